"""Opens a workspace: finds the settings, starts or reaches Postgres, and puts the rooms together."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from lakeward.clock import Clock, Faults, Ids, NoFaults, RandomIds, SystemClock
from lakeward.compute.engine import Engine
from lakeward.control.counters import Counters, Counting
from lakeward.control.dataset_expectations import DatasetExpectations
from lakeward.control.db import Database
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.expectation_results import ExpectationResults
from lakeward.control.flags.cache import FlagCache
from lakeward.control.flags.listener import FlagListener
from lakeward.control.flags.store import FlagTable
from lakeward.control.flips import Flips
from lakeward.control.follows import FollowTables
from lakeward.control.idempotency import IdempotencyKeys
from lakeward.control.ignore_rules import IgnoreRules
from lakeward.control.ledger import Ledger
from lakeward.control.metrics import Metrics
from lakeward.control.models import ModelTables
from lakeward.control.parity import ParityChecks
from lakeward.control.purges import Purges
from lakeward.control.recorded_digests import RecordedDigests
from lakeward.control.retention import Retention
from lakeward.control.schema import migrate
from lakeward.control.slots import Slots
from lakeward.control.sources import SourceTables
from lakeward.control.table_places import TablePlaces
from lakeward.control.tree import Tree
from lakeward.discovery import discover_lazily
from lakeward.errors import ConflictError, StorageError
from lakeward.migration.moves.sweep import Sweep
from lakeward.migration.stage import Rooms as FlipRooms
from lakeward.pipelines.dataset_judging import DatasetJudging
from lakeward.pipelines.models.registry import Models
from lakeward.pipelines.service import Pipelines
from lakeward.pipelines.stage_runner import Stages
from lakeward.sources.allowed import Allowed
from lakeward.storage import arms
from lakeward.storage.adopting import Adopting
from lakeward.storage.arm import ArmContext, StorageArm
from lakeward.storage.compaction import Compaction, CompactionMode
from lakeward.storage.copying import Copying
from lakeward.storage.duck import Duck
from lakeward.storage.facade import Storage
from lakeward.storage.finding import Finder
from lakeward.storage.foreign import Foreign
from lakeward.storage.made_arms import MadeArms
from lakeward.storage.maintenance import DEFAULT_SECONDS, Maintenance
from lakeward.storage.moving import Moving
from lakeward.storage.protocol import WriteProtocol
from lakeward.storage.purging import Purging
from lakeward.storage.recovery import Recovery
from lakeward.storage.replication import Replication
from lakeward.storage.routing import Routing
from lakeward.storage.settings import CompactionPolicy, StorageSettings
from lakeward.storage.shadow import Sampler, Shadow
from lakeward.storage.warehouse import Warehouse
from lakeward.wiring.engines import ad_hoc, compute_engine
from lakeward.wiring.expecting import Expecting
from lakeward.wiring.flags import Flags
from lakeward.wiring.follow_worker import FollowLimits, FollowRooms
from lakeward.wiring.following import FollowedSources
from lakeward.wiring.parts import Parts
from lakeward.wiring.places import prepared_home, resolve_settings, scratch_below, warehouse_of
from lakeward.wiring.sections import LedgerSection, ShadowSection
from lakeward.wiring.settings import LoadedSettings, Settings
from lakeward.wiring.telemetry.starting import telemetry
from lakeward.wiring.tree import tree_rooms
from lakeward.wiring.upkeep import Upkeep
from lakeward.wiring.workspace import Workspace

log = logging.getLogger("lakeward.opening")


def open_workspace(
    home: str | Path | None = None,
    *,
    database_url: str | None = None,
    warehouse: str | Path | None = None,
    catalog: Mapping[str, str] | None = None,
    settings_file: str | Path | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    faults: Faults | None = None,
    extra_arms: Sequence[type[StorageArm]] = (),
    recover: bool | None = None,
) -> Workspace:
    """Open a workspace, making it on first use.

    Args:
        home: its directory: embedded Postgres, local warehouse, scratch space. None: `LAKEWARD_HOME`; not needed where
            `database_url` and `warehouse` are given.
        database_url: a Postgres (15 or newer) instead of the embedded one. None: `LAKEWARD_DATABASE_URL`.
        warehouse: the directory of the Iceberg tables, or `s3://bucket/prefix`. None: `warehouse` in the home.
        catalog: properties of a PyIceberg catalog, e.g. `{"type": "rest", "uri": …}`. None: one in the same Postgres.
        settings_file: a `lakeward.toml` to read besides the one in the home.
        clock: injected by tests.
        ids: injected by tests.
        faults: injected by tests.
        extra_arms: arms besides those of the package, as `lakeward.testing.InMemoryArm`; datasets can be copied there.
        recover: finish or remove what processes that died left behind. None: the setting `ledger.recover_at_start`.

    Raises:
        SettingsError: neither a home nor a database is named, or a setting is wrong.
        HomeNotWritable: the directory can't be used.
        DatabaseUnavailable, EmbeddedPostgresError: Postgres can't be reached or started.

    Example:
        >>> with lakeward.open("./home") as ws:
        ...     ws.datasets()
        []
    """
    flags = {
        "home": home,
        "database_url": database_url,
        "warehouse": str(warehouse) if warehouse is not None else None,
        "catalog": dict(catalog) if catalog is not None else None,
    }
    loaded = resolve_settings(flags, settings_file)
    recovers = loaded.values.ledger.recover_at_start if recover is None else recover
    return open_loaded(loaded, (clock, ids, faults), extra_arms, recover=recovers)


def open_loaded(
    loaded: LoadedSettings,
    given: tuple[Clock | None, Ids | None, Faults | None] = (None, None, None),
    extra_arms: Sequence[type[StorageArm]] = (),
    *,
    recover: bool = False,
) -> Workspace:
    """Open a workspace by settings that are loaded already; `given`: clock, ids, faults. See `open_workspace`."""
    clock, ids, faults = given
    with ExitStack() as undo:
        # An arm is imported when something is asked of it: most commands need one of them at most.
        arms_by_name = discover_lazily(arms, StorageArm) | {arm.name: partial(_given, arm) for arm in extra_arms}
        ports = (clock or SystemClock(), ids or RandomIds(), faults or NoFaults())
        workspace = _assemble(loaded, undo, *ports, arms_by_name)
        if recover:
            _recover(workspace)
        undo.pop_all()
    return workspace


def _recover(workspace: Workspace) -> None:
    """Tidy up at start. What can't be tidied now is tidied before the next write to its dataset."""
    try:
        workspace.recovery.recover()
    except (StorageError, ConflictError) as error:
        log.warning("not everything that dead processes left could be tidied up at start: %s", error)


def _assemble(
    loaded: LoadedSettings,
    undo: ExitStack,
    clock: Clock,
    ids: Ids,
    faults: Faults,
    arms_by_name: Mapping[str, Callable[[], type[StorageArm]]],
) -> Workspace:
    settings = loaded.values
    home = prepared_home(settings)
    warehouse, database = warehouse_of(settings, home), _database(settings, home, undo)  # refused before it starts
    migrate(database)
    tree, ledger = Tree(database), _ledger(settings.ledger, database)
    slots = Slots(database, ledger, clock, timeout_seconds=settings.ledger.lock_timeout_seconds)
    counting = _counting(database, undo)
    scratch = scratch_below(home, undo)
    storage_settings = _storage_settings(settings, warehouse, scratch)
    duck = Duck(storage_settings)
    undo.callback(duck.close)
    made = MadeArms(ArmContext(database, ledger, storage_settings, duck, ids, faults), arms_by_name)
    undo.callback(made.close)
    recovery, retention = Recovery(tree, ledger, made, faults), Retention(database, settings.retention.versions)
    no_wait = Slots(database, ledger, clock, timeout_seconds=0)
    write = partial(WriteProtocol, duck=duck, clock=clock, ids=ids, faults=faults, metrics=counting.metrics)
    protocol, hasty = (write(tree, ledger, line, made, recovery) for line in (slots, no_wait))
    compaction = _compaction(settings, tree, ledger, made, protocol, hasty)
    cache = _flag_cache(database, clock, counting.metrics, undo)
    routing = Routing(ledger, made, retention, cache, counting.metrics)
    shadow = _shadow(settings.shadow, duck, database, counting.metrics, clock)
    undo.callback(shadow.close)
    replication = Replication(tree, ledger, slots, routing, protocol, recovery, retention, duck, ids)
    copying, recorded = Copying(tree, routing, protocol, replication), RecordedDigests(database)
    storage = Storage(tree, routing, protocol, recorded, duck, compaction, cache, shadow, copying)
    maintenance = _maintenance(settings, database, retention, recovery, replication, compaction, made, faults)
    purging = Purging(tree, Purges(database), retention, made, faults)
    flips = Flips(database, lease_seconds=settings.ledger.lease_seconds)
    engine = compute_engine(settings.compute, scratch)
    models = Models(ModelTables(database), settings.models.time_limit_seconds)
    stages = partial(_stages, models, scratch)
    moving = Moving(ledger, slots, made, recovery.recover, faults, ids)
    flags = Flags(tree, FlagTable(database), cache, replication, ParityChecks(database), flips)
    pipelines = Pipelines(tree, ledger, storage, recovery, engine, database, models, stages, settings.build.jobs)
    undo.callback(telemetry(settings.telemetry, tree, pipelines))
    upkeep = Upkeep(tree, maintenance, models, Counters(database), scratch, purging, IdempotencyKeys(database))
    parts = Parts(
        settings=loaded,
        database=database,
        tree=tree,
        ledger=ledger,
        storage=storage,
        replication=replication,
        moving=moving,
        moves=Sweep(tree, TablePlaces(database), moving, recovery.recover),
        flags=flags,
        flips=_flip_rooms(tree, storage, replication, flips, database, duck, clock, faults),
        adopting=Adopting(tree, made, protocol),
        foreign=Foreign(tree, ledger, made, protocol, recovery),
        recovery=recovery,
        retention=retention,
        expecting=_expecting(tree, ledger, storage, engine, database),
        upkeep=upkeep,
        pipelines=pipelines,
        queries=ad_hoc(settings, tree, ledger, storage, scratch),
        names=tree_rooms(tree, ledger, slots, recovery, pipelines, settings.retention.dropped_days, faults, ids),
        models=models,
        metrics=counting,
        sources=_sources(settings, database, tree, storage, scratch, upkeep),
        scratch=scratch,
    )
    return Workspace(parts, close=_once(undo.pop_all().close))


def _given(arm: type[StorageArm]) -> type[StorageArm]:
    return arm


def _ledger(wanted: LedgerSection, database: Database) -> Ledger:
    return Ledger(database, lease_seconds=wanted.lease_seconds, idempotency_days=wanted.idempotency_days)


def _expecting(tree: Tree, ledger: Ledger, storage: Storage, engine: Engine, database: Database) -> Expecting:
    judging = DatasetJudging(tree, ledger, storage, engine, ExpectationResults(database))
    storage.judging = judging
    return Expecting(DatasetExpectations(database), judging)


def _flag_cache(database: Database, clock: Clock, metrics: Metrics, undo: ExitStack) -> FlagCache:
    listener = FlagListener(database, clock)
    undo.callback(listener.close)
    return FlagCache(FlagTable(database), clock, listener.asked, metrics)


def _counting(database: Database, undo: ExitStack) -> Counting:
    counting = Counting(Counters(database))
    undo.callback(counting.close)
    return counting


def _maintenance(
    settings: Settings,
    database: Database,
    retention: Retention,
    recovery: Recovery,
    replication: Replication,
    compaction: Compaction,
    made: Mapping[str, StorageArm],
    faults: Faults,
) -> Maintenance:
    return Maintenance(
        Tree(database),
        retention,
        recovery,
        replication,
        compaction,
        made,
        ParityChecks(database),
        kept_findings=settings.retention.comparisons,
        lease_seconds=settings.ledger.lease_seconds,
        faults=faults,
    )


def _flip_rooms(
    tree: Tree,
    storage: Storage,
    replication: Replication,
    flips: Flips,
    database: Database,
    duck: Duck,
    clock: Clock,
    faults: Faults,
) -> FlipRooms:
    rules = IgnoreRules(database)
    parity, finder, flags = ParityChecks(database), Finder(duck), FlagTable(database)
    return FlipRooms(tree, storage, replication, flips, parity, clock, faults, finder, rules, flags)


def _storage_settings(settings: Settings, warehouse: Warehouse, scratch: Path) -> StorageSettings:
    return StorageSettings(
        warehouse=warehouse,
        scratch=scratch,
        catalog=settings.catalog,
        memory_limit=settings.storage.memory_limit,
        target_file_bytes=settings.storage.target_file_bytes,
        retained_versions=settings.retention.versions,
        filter_seconds=settings.compute.time_limit_seconds,
        born_in_place=settings.iceberg.born_in_place,
        born_in_place_by_writer=settings.iceberg.born_in_place_by_writer,
    )


def _shadow(wanted: ShadowSection, duck: Duck, database: Database, metrics: Metrics, clock: Clock) -> Shadow:
    parity, rules, sampled = ParityChecks(database), IgnoreRules(database), Sampler(wanted.share)
    return Shadow(duck, parity, rules, metrics, clock, limit_seconds=wanted.limit_seconds, sampled=sampled)


def _sources(
    settings: Settings, database: Database, tree: Tree, storage: Storage, scratch: Path, upkeep: Upkeep
) -> FollowedSources:
    wanted = settings.sources
    rooms = FollowRooms(
        tree,
        storage,
        SourceTables(database),
        FollowTables(database),
        FollowLimits(wanted.follow_seconds, wanted.follow_rows, wanted.follow_bytes, wanted.lag_limit_bytes),
        settings.storage.memory_limit,
        scratch,
        partial(upkeep.run, older_than=DEFAULT_SECONDS),
    )
    allowed = Allowed.declare(wanted.allowed_hosts, wanted.allowed_paths, wanted.allowed_references)
    return FollowedSources(rooms, allowed, wanted.jobs, IdempotencyKeys(database))


def _stages(models: Models, scratch: Path, engine: Engine) -> Stages:
    return Stages(engine, models, scratch, engine.threads)


def _compaction(
    settings: Settings,
    tree: Tree,
    ledger: Ledger,
    arms_by_name: Mapping[str, StorageArm],
    patient: WriteProtocol,
    hasty: WriteProtocol,
) -> Compaction:
    wanted = settings.compaction
    policy = CompactionPolicy(
        delete_files=wanted.delete_files,
        deleted_share=wanted.deleted_share,
        small_files=wanted.small_files,
        small_share=wanted.small_share,
        target_bytes=settings.storage.target_file_bytes,
    )
    mode = CompactionMode(asked=wanted.mode != "off", automatic=wanted.mode == "automatic")
    return Compaction(tree, ledger, arms_by_name, patient=patient, hasty=hasty, policy=policy, mode=mode)


def reach_database(loaded: LoadedSettings, undo: ExitStack) -> Database:
    """Return the database of a workspace, its embedded server started, whatever is in it.

    Args:
        loaded: the settings.
        undo: lets go of it when it is closed.

    Raises:
        What `open_workspace` raises for these.
    """
    return _database(loaded.values, prepared_home(loaded.values), undo)


def _database(settings: Settings, home: Path | None, undo: ExitStack) -> Database:
    if settings.database_url is not None:
        database = Database(settings.database_url.get_secret_value())
    else:
        assert home is not None
        server = EmbeddedPostgres.acquire(home / "postgres", home / "cache")
        undo.callback(server.release)
        database = Database(server.url)
    undo.callback(database.close)
    return database


def _once(close: Callable[[], None]) -> Callable[[], None]:
    pending, process = [close], os.getpid()

    def run() -> None:
        # What a fork inherited is its parent's, which goes on using it.
        if pending and process == os.getpid():
            pending.pop()()

    return run
