"""What counts as a raw access, and what does not: small source trees, read from disk as users have them."""

from __future__ import annotations

import doctest
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakeward.errors import UnknownObject, UsageError
from lakeward.migration.seam import scan, scanning, survey
from lakeward.migration.seam.scanning import MAX_BYTES


def found(folder: Path, name: str, content: str | bytes, *tables: str) -> str:
    """Return what counts in a file, in short: `1 select, 3 delete`."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    accesses = scan(folder, tables or ("lakeward.dataset_rows",))
    return ", ".join(f"{access.line} {access.kind}" for access in accesses)


SQL: dict[str, tuple[str | bytes, str]] = {
    "every statement": (
        (
            "SELECT 1 FROM lakeward.dataset_rows;\n"
            "INSERT INTO dataset_rows (a) VALUES (1);\n"
            "UPDATE dataset_rows SET a = 1;\n"
            "DELETE FROM ONLY dataset_rows;\n"
            "MERGE INTO dataset_rows t USING s ON true WHEN MATCHED THEN DELETE;\n"
            "COPY dataset_rows (a) FROM STDIN;\n"
            "TRUNCATE dataset_rows;\n"
            "CREATE INDEX i ON dataset_rows (a);\n"
            "ALTER TABLE dataset_rows ADD b int;\n"
            "DROP TABLE IF EXISTS dataset_rows;\n"
            "LOCK TABLE dataset_rows;\n"
            "VACUUM dataset_rows;\n"
            "EXPLAIN ANALYZE SELECT 1 FROM dataset_rows;\n"
            "TABLE dataset_rows;\n"
        ),
        (
            "1 select, 2 insert, 3 update, 4 delete, 5 merge, 6 copy, 7 truncate, 8 create, 9 alter, 10 drop, "
            "11 lock, 12 vacuum, 13 select, 14 text"
        ),
    ),
    "joins, subqueries and both ends of a statement": (
        (
            "INSERT INTO dataset_rows\n"
            "SELECT a FROM x JOIN dataset_rows r USING (a)\n"
            "WHERE a IN (SELECT a FROM dataset_rows)"
        ),
        "1 insert, 2 select, 3 select",
    ),
    "a changing CTE": ("WITH d AS (DELETE FROM dataset_rows RETURNING a) SELECT a FROM d", "1 delete"),
    "quotes and case": ('SELECT 1 FROM "Lakeward"."dataset_rows", LAKEWARD.Dataset_Rows', "1 select, 1 select"),
    "an odd layout": ("SELECT 1 FROM lakeward /* here */\n  .\n  dataset_rows", "3 select"),
    "no comments": (
        ("-- dataset_rows\nSELECT 1 /* FROM dataset_rows */;\nCOMMENT ON TABLE x IS 'no dataset_rows'"),
        "",
    ),
    "no columns and aliases": (
        (
            "SELECT r.dataset_rows, dataset_rows AS dataset_rows FROM x AS r (dataset_rows);\n"
            "INSERT INTO log (dataset_rows) VALUES (1); CREATE TABLE t (dataset_rows int)"
        ),
        "",
    ),
    "no qualifiers of columns": ("SELECT dataset_rows.* FROM dataset_rows FOR UPDATE OF dataset_rows", "1 select"),
    "no other names": ("SELECT 1 FROM other.dataset_rows, dataset_rows_old, lakeward.my_dataset_rows", ""),
    "a CTE that shadows": (
        "WITH dataset_rows AS (SELECT 1) SELECT * FROM dataset_rows, (SELECT 1 FROM dataset_rows) d",
        "",
    ),
    "a CTE of the table itself": (
        ("WITH dataset_rows AS (\nSELECT 1 FROM dataset_rows)\nSELECT 1 FROM dataset_rows"),
        "2 select",
    ),
    "a CTE does not shadow a schema": ("WITH dataset_rows AS (SELECT 1) TABLE lakeward.dataset_rows", "1 select"),
    "a CTE is never written to": ("WITH dataset_rows AS (SELECT 1) DELETE FROM dataset_rows", "1 delete"),
    "a CTE ends with its query": (
        ("SELECT 1 FROM (WITH dataset_rows AS (SELECT 1) TABLE dataset_rows) x,\ndataset_rows"),
        "2 select",
    ),
    "names in strings": ("SELECT 'lakeward.dataset_rows'::regclass", "1 select"),
    "types of rows": ("CREATE TABLE x (a dataset_rows);\nSELECT f(NULL::lakeward.dataset_rows)", "1 create, 2 select"),
    "bodies": ("DO $$ BEGIN\n  -- dataset_rows\n  DELETE FROM dataset_rows; END $$", "3 delete"),
    "SQL in SQL": ("SELECT query('SELECT ''x'' FROM dataset_rows')", "1 select"),
    "what no grammar knows": ("SELECT 1 FROM x;\nFROBNICATE dataset_rows NOW", "2 text"),
    "templates": ("SELECT * FROM {{ ref('dataset_rows') }};\n\\copy dataset_rows from x\n", "1 select, 2 copy"),
    "schemas that are not known": (
        (
            'SELECT 1 FROM :schema.dataset_rows, :"s".dataset_rows, $s.dataset_rows, @s.dataset_rows;\n'
            "SELECT 1 FROM {{ s }}.dataset_rows;\n"
            "EXECUTE format('TRUNCATE %I.dataset_rows', s)"
        ),
        "1 select, 1 select, 1 select, 1 select, 2 select, 3 truncate",
    ),
    "a quote that never ends": ("SELECT 'x FROM dataset_rows", "1 text"),
}


@pytest.mark.parametrize("case", SQL)
def test_sql_files(tmp_path: Path, case: str) -> None:
    content, wanted = SQL[case]
    assert found(tmp_path, "some.SQL", content) == wanted


PYTHON: dict[str, tuple[str | bytes, str]] = {
    "literals": ("x = 'SELECT 1 FROM dataset_rows'\ny = rb'''\nDELETE FROM dataset_rows'''", "1 select, 3 delete"),
    "adjacent": ("f('SELECT 1 '\n  'FROM lakeward.'\n  'dataset_rows')", "3 select"),
    "f-strings": ('f"""SELECT {a}\nFROM {s}.dataset_rows {w} LIMIT {n:{m}}"""', "2 select"),
    "nested f-strings": ("f\"SELECT 1 FROM {f'{s}.dataset_rows'} {'x' if y else 'dataset_rows'}\"", "1 name, 1 select"),
    "a prefix that is not known": ("f'DELETE FROM {prefix}dataset_rows{alias}'", "1 delete"),
    "another table's name": ("f'SELECT 1 FROM dataset_rows_{year}, other.dataset_rows'", ""),
    "concatenation": ("x = 'SELECT 1 ' + 'FROM ' + s +\\\n  '.dataset_rows ' + where", "2 select"),
    "formats": (
        "'SELECT %s FROM %(s)s.dataset_rows' % x\n'TRUNCATE {}.dataset_rows'.format(s)",
        "1 select, 2 truncate",
    ),
    "parts": ("parts = ['FROM dataset_rows r', 'WHERE dataset_rows.a > 1']", "1 text, 1 text"),
    "options of a program": ("run('pg_dump --table dataset_rows')", "1 text"),
    "a constant that may be another": (
        "try:\n    from m import S\nexcept ImportError:\n    S = 'other'\nq = f'SELECT 1 FROM {S}.dataset_rows'",
        "5 select",
    ),
    "constants": (
        ("SCHEMA = 'lakeward'\nT: str = 'dataset_rows'\nq = f'DELETE FROM {SCHEMA}.{T}'\nIdentifier(T)"),
        "2 name, 3 delete, 4 name",
    ),
    "a constant of another schema": ("S = 'other'\nq = f'SELECT 1 FROM {S}.dataset_rows'", ""),
    "a variable is no constant": ("S = 'other'\nS = g()\nq = f'SELECT 1 FROM {S}.dataset_rows'", "3 select"),
    "walrus": ("if (t := 'dataset_rows'):\n    q = 'SELECT 1 FROM ' + t", "1 name, 2 select"),
    "SQLAlchemy": (
        ("Table('dataset_rows', m, schema='lakeward')\nclass A:\n    __tablename__ = \"dataset_rows\""),
        "1 name, 3 name",
    ),
    "identifiers": (
        (
            "from m import dataset_rows as r\n"
            "r = db.dataset_rows\n"
            "def f(dataset_rows): ...\n"
            "g(dataset_rows=1)\n"
            "DATASET_ROWS"
        ),
        "1 name, 2 name, 3 name, 4 name, 5 name",
    ),
    "longer identifiers": ("dataset_rows_total = my_dataset_rows = 1", ""),
    "comments and docstrings": (
        (
            "'''Of dataset_rows.'''\n"
            "# dataset_rows\n"
            "class A:\n"
            "    '''dataset_rows'''\n"
            "    x = 1\n"
            "    '''dataset_rows'''\n"
            "    def f():\n"
            "        r'''SELECT 1 FROM dataset_rows'''"
        ),
        "",
    ),
    "SQL comments": ("x = 'SELECT 1 -- FROM dataset_rows\\n FROM y'", ""),
    "an encoding": (b"# -*- coding: latin-1 -*-\nx = '\xe9' 'dataset_rows'\n", ""),
    "an encoding of no text": (b"# coding: rot13\nx = 'dataset_rows'\n", "2 name"),
    "an encoding, with a name": (b"# -*- coding: latin-1 -*-\nx = '\xe9', 'dataset_rows'\n", "2 name"),
    "Windows": ("# x\r\n\r\nx = '''\r\nTRUNCATE dataset_rows'''\r\n", "4 truncate"),
}


@pytest.mark.parametrize("case", PYTHON)
def test_python(tmp_path: Path, case: str) -> None:
    content, wanted = PYTHON[case]
    assert found(tmp_path, "some.py", content) == wanted


OTHERS: dict[str, tuple[str | bytes, str]] = {
    "a.ts": ("// dataset_rows\nq(`SELECT 1\nFROM ${s}.dataset_rows`) /* dataset_rows */", "3 select"),
    "b.js": ("db.dataset_rows.find('http://x'); d('don\\'t'); q(\"DELETE FROM dataset_rows\")", "1 delete, 1 name"),
    "c.java": (
        ('@Table(name = "dataset_rows")\nString q = """\n  SELECT 1 FROM dataset_rows\n""";'),
        "1 name, 3 select",
    ),
    "d.rb": (
        ('# dataset_rows\nx = "SELECT 1 FROM #{s}.dataset_rows"\ny = <<~Q\n  FROM #{s}.dataset_rows\nQ'),
        "2 select, 4 name",
    ),
    "e.sh": ('psql -c "TRUNCATE dataset_rows" # dataset_rows\necho $# dataset_rows', "1 truncate, 2 name"),
    "f.yml": ("sql: |\n  select 1 from dataset_rows\nnote: don't # dataset_rows", "2 name"),
    "g.go": ("/* never closed\nx := `UPDATE dataset_rows SET a = 1`", "2 update"),
    "h.txt": ("SELECT 1 FROM dataset_rows", ""),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_languages(tmp_path: Path, name: str) -> None:
    content, wanted = OTHERS[name]
    assert found(tmp_path, name, content) == wanted


def test_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = doctest.testmod(scanning)
    assert ran.attempted == 2 and not ran.failed


def test_other_tables(tmp_path: Path) -> None:
    content = 'SELECT 1 FROM app.Users u, x.users, rows\nJOIN "my table" ON u.rows = sum(a) OVER (ROWS 1 PRECEDING)'
    assert found(tmp_path, "a.sql", content, "app.users") == "1 select"
    assert found(tmp_path, "a.sql", content, "users", "rows") == "1 select, 1 select, 1 select"
    assert found(tmp_path, "a.sql", content, '"my table"') == "2 select"
    part = "FROM users u JOIN ON users.a = rows.a AND users.b"
    assert found(tmp_path, "a.sql", part, "users", "rows") == "1 text, 1 text"
    for wrong in ("", "a.b.c", ".b", "a.", "a b"):
        with pytest.raises(UsageError, match="is not a table's name"):
            scan(tmp_path, [wrong])


def test_what_can_not_be_parsed_is_counted_and_told(tmp_path: Path) -> None:
    statement = "SELECT 1 FROM dataset_rows"
    (tmp_path / "broken.py").write_text(f"# dataset_rows\nprint 'x'\nq = '{statement}'\n")
    (tmp_path / "deep.py").write_text(f"q = {'(' * 300}1{')' * 300}, '{statement}'")
    (tmp_path / "latin.sql").write_bytes(f"SELECT 'é';\n{statement}".encode("latin-1"))
    (tmp_path / "wide.sql").write_bytes(statement.encode("utf-16"))
    (tmp_path / "huge.sql").write_text(f"{' ' * MAX_BYTES}\n-- {statement}, dataset_rows_old\n")
    (tmp_path / "huge_without.sql").write_text(" " * (MAX_BYTES + 1))
    Path(os.fsdecode(bytes(tmp_path) + b"/\xff.sql")).write_text(statement)
    (tmp_path / "shut").mkdir(mode=0o000)
    result = survey(tmp_path)
    (tmp_path / "shut").chmod(0o700)
    assert [(access.file, access.line, access.kind) for access in result.accesses] == [
        ("\\xff.sql", 1, "select"),
        ("broken.py", 3, "select"),
        ("deep.py", 1, "select"),
        ("huge.sql", 2, "text"),
        ("latin.sql", 2, "select"),
        ("wide.sql", 1, "select"),
    ]
    told = {warned.file: warned.message for warned in result.warnings}
    assert "line 2" in told["broken.py"] and "its tokens were searched" in told["broken.py"]
    assert "its tokens were searched" in told["deep.py"]
    assert "not UTF-8" in told["latin.sql"] and "too large to parse (2 MB)" in told["huge.sql"]
    assert told.get("shut", "can't be read: Permission denied") == "can't be read: Permission denied"
    assert ("shut" in told) == (os.getuid() != 0) and len(told) <= 5


def test_which_files_are_looked_at(tmp_path: Path) -> None:
    repository, outside = tmp_path / "repository", tmp_path / "outside"
    for name in (
        "src/a.py", "src/storage/b.py", "src/storage/deep/c.py", "src/gen/d.py", "src/gen/kept.py", "src/e.gen.py",
        ".git/f.py", "src/node_modules/g.js", "src/__pycache__/h.py", "src/env/lib/i.py", "top.py",
    ):  # fmt: skip
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("x = 'dataset_rows'")
    (repository / "src/env/pyvenv.cfg").write_text("")
    (repository / ".gitignore").write_text("*.gen.py\nsrc/gen/*\n")
    (repository / "src/gen/.gitignore").write_text("!kept.py\n")
    outside.mkdir()
    (outside / "j.py").write_text("x = 'dataset_rows'")
    (repository / "src/link").symlink_to(outside)
    (repository / "src/link.py").symlink_to(outside / "j.py")

    result = survey(repository / "src", allow=["src/storage/**"], root=repository)
    assert result.counts == {"src/a.py": 1, "src/gen/kept.py": 1}
    assert [access.file for access in scan(repository / "src/a.py")] == ["a.py"]
    (repository / ".gitignore").write_text("src/\n")
    assert [access.file for access in scan(repository)] == ["top.py"]
    assert "storage/b.py" in {access.file for access in scan(repository / "src")}, "named, so looked at"
    with pytest.raises(UnknownObject, match="no file or folder"):
        scan(repository / "typo")
    with pytest.raises(UsageError, match="is not below"):
        scan(outside, root=repository)
    with pytest.raises(UsageError, match="not of a sort"):
        scan(repository / ".gitignore")
    with pytest.raises(UsageError, match="--allow"):
        scan(repository, allow=["!"])


PLANTS = {
    "py": [
        "q = 'SELECT a FROM {t} WHERE b'",
        'q = f"INSERT INTO {t} VALUES ({{x}})"',
        'q = """\nWITH x AS (SELECT 1)\nDELETE FROM {t} USING x"""',
        "q = 'UPDATE ' '{t} SET a = 1' + more",
        "y = Table('{t}')",
    ],
    "sql": ["SELECT a FROM {t};", "COPY {t} TO STDOUT;", "UPDATE {t} SET a = 'it''s';", "VACUUM {t};"],
    "ts": ["q('SELECT a FROM {t}');", "q(`DELETE FROM {t}\n WHERE a = ${{x}}`);"],
}
NOISE = {
    "py": ["# dataset_rows", "def f():\n    'dataset_rows'", "q = 'SELECT a.dataset_rows FROM other AS a'"],
    "sql": [
        "-- lakeward.dataset_rows",
        "SELECT dataset_rows FROM y;",
        "WITH dataset_rows AS (SELECT 1) TABLE dataset_rows;",
    ],
    "ts": ["// dataset_rows", "q('SELECT dataset_rows FROM y');"],
}
NAMES = ("dataset_rows", "lakeward.dataset_rows", "Lakeward.DATASET_ROWS")


@settings(max_examples=40, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_what_is_planted_is_counted_exactly(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, seed: int
) -> None:
    chance = random.Random(seed)
    top = tmp_path_factory.mktemp("planted")
    wanted: dict[str, int] = {}
    for number in range(data.draw(st.integers(1, 4))):
        suffix = data.draw(st.sampled_from(sorted(PLANTS)))
        planted = data.draw(st.integers(0, 6))
        lines = [chance.choice(PLANTS[suffix]).format(t=chance.choice(NAMES)) for _ in range(planted)]
        lines += [chance.choice(NOISE[suffix]) for _ in range(chance.randrange(6))]
        chance.shuffle(lines)
        (top / f"{number}.{suffix}").write_text("\n".join(lines) + "\n")
        if planted:
            wanted[f"{number}.{suffix}"] = planted
    result = survey(top)
    assert result.counts == wanted and not result.warnings
    for access in result.accesses:
        assert "dataset_rows" in (top / access.file).read_text().split("\n")[access.line - 1].lower()
