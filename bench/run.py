"""Runs every benchmark and prints its table: `make bench`. Each figure is a ratio to a reference of the same run."""

from __future__ import annotations

import sys

import appends
import delta
import digest
import flip
import iceberg_replace
import merge
import models
import pages
import parallel
import pipelines
import postgres_rows
import server_load
import small_build
import sources
import stalled

import cdc
import files
import jobs
import moves
import server
import stores

BENCHMARKS = (
    iceberg_replace,
    postgres_rows,
    digest,
    small_build,
    appends,
    cdc,
    merge,
    delta,
    files,
    flip,
    jobs,
    models,
    moves,
    pages,
    pipelines,
    parallel,
    server,
    server_load,
    sources,
    stalled,
    stores,
)


def main() -> None:
    """Run the benchmarks whose names are given, or all."""
    chosen = set(sys.argv[1:])
    for benchmark in BENCHMARKS:
        if not chosen or benchmark.__name__ in chosen:
            print(benchmark.main(), flush=True)


if __name__ == "__main__":
    main()
