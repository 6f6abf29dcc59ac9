// The tables and every statement on them. A row of `keys` is everything that a measurement depends
// on besides the candidate; `full_keys` shows it as text. A `seal` is a hash over the row and its
// whole key as text: SQLite itself would not notice a flipped bit in a number.

#include "store/database.h"

// The first step makes tables of version 1 in an empty database, each further step upgrades by one
// version. Databases in use were made by these steps, so they must never change.
const char *const kg_store_steps[KG_STORE_VERSION] = {
    "CREATE TABLE ops("
    "  id INTEGER PRIMARY KEY, name TEXT NOT NULL, definition TEXT NOT NULL,"
    "  UNIQUE(name, definition));"
    "CREATE TABLE problems("
    "  id INTEGER PRIMARY KEY, op INTEGER NOT NULL REFERENCES ops,"
    "  dtypes TEXT NOT NULL, sizes TEXT NOT NULL, layout TEXT NOT NULL,"
    "  UNIQUE(op, dtypes, sizes, layout));"
    "CREATE TABLE devices("
    "  id INTEGER PRIMARY KEY, name TEXT NOT NULL, isa TEXT NOT NULL, units INTEGER NOT NULL,"
    "  driver TEXT NOT NULL, UNIQUE(name, isa, units, driver));"
    "CREATE TABLE keys("
    "  id INTEGER PRIMARY KEY, problem INTEGER NOT NULL REFERENCES problems,"
    "  device INTEGER NOT NULL REFERENCES devices, compiler TEXT NOT NULL,"
    "  protocol TEXT NOT NULL, generator TEXT NOT NULL,"
    "  UNIQUE(problem, device, compiler, protocol, generator));"
    "CREATE VIEW full_keys AS SELECT keys.id AS id, ops.name AS op, definition, dtypes, sizes,"
    "  layout, devices.name AS device, isa, units, driver, compiler, protocol, generator"
    "  FROM keys JOIN problems ON problems.id = keys.problem JOIN ops ON ops.id = problems.op"
    "  JOIN devices ON devices.id = keys.device;"
    "CREATE TABLE candidates("
    "  id INTEGER PRIMARY KEY, choice TEXT NOT NULL, source TEXT NOT NULL,"
    "  UNIQUE(choice, source));"
    "CREATE TABLE outcomes("
    "  id INTEGER PRIMARY KEY, key INTEGER NOT NULL REFERENCES keys,"
    "  candidate INTEGER NOT NULL REFERENCES candidates, date TEXT NOT NULL, kind TEXT NOT NULL,"
    "  bound REAL, compile_seconds REAL, samples INTEGER, median REAL, least REAL, spread REAL,"
    "  abandoned INTEGER, final INTEGER, passed INTEGER, seed INTEGER, cases INTEGER,"
    "  skipped INTEGER, elements INTEGER, worst_relative REAL, worst_rms REAL, impostors INTEGER,"
    "  verdict TEXT, reason TEXT, seal TEXT NOT NULL);"
    "CREATE INDEX outcomes_by_key ON outcomes(key, candidate);"
    "CREATE TABLE wisdom("
    "  key INTEGER PRIMARY KEY REFERENCES keys, choice TEXT NOT NULL, rigor TEXT NOT NULL,"
    "  seconds REAL NOT NULL, spread REAL NOT NULL, seed INTEGER NOT NULL, date TEXT NOT NULL,"
    "  seal TEXT NOT NULL);"
    "CREATE TABLE rounds("
    "  id INTEGER PRIMARY KEY, key INTEGER NOT NULL REFERENCES keys, date TEXT NOT NULL,"
    "  number INTEGER, diagnosis TEXT, change TEXT, choice TEXT, before REAL, after REAL,"
    "  baseline REAL, roofline REAL, result TEXT);"
    "CREATE INDEX rounds_by_key ON rounds(key);",

    // The performance model's forecast of a measured candidate: JSON, as forecast_json.h writes it.
    "CREATE TABLE promises("
    "  outcome INTEGER PRIMARY KEY REFERENCES outcomes, promise TEXT NOT NULL, seal TEXT NOT "
    "NULL);",

    // Outcomes of an override (PTX from a file instead of a choice's kernels): the file's name.
    "ALTER TABLE outcomes ADD COLUMN override TEXT NOT NULL DEFAULT '';",

    // Verdicts belong to emitted kernels, whose hash is in the row. The version of the generator,
    // which was a part of the key, remains where it is part of a seal. Keys that become equal
    // without it are merged, with the wisdom that was learned last.
    "ALTER TABLE outcomes ADD COLUMN emitted TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE outcomes ADD COLUMN generator TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE wisdom ADD COLUMN source TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE wisdom ADD COLUMN generator TEXT NOT NULL DEFAULT '';"
    "UPDATE outcomes SET generator = (SELECT generator FROM keys WHERE keys.id = outcomes.key);"
    "UPDATE wisdom SET generator = (SELECT generator FROM keys WHERE keys.id = wisdom.key);"
    "CREATE TEMP TABLE merged AS SELECT old.id AS id, min(new.id) AS kept FROM keys AS old"
    "  JOIN keys AS new USING (problem, device, compiler, protocol) GROUP BY old.id;"
    "CREATE UNIQUE INDEX temp.merged_by_id ON merged(id);"
    "UPDATE outcomes SET key = (SELECT kept FROM merged WHERE merged.id = outcomes.key);"
    "UPDATE rounds SET key = (SELECT kept FROM merged WHERE merged.id = rounds.key);"
    "CREATE TEMP TABLE learned AS SELECT kept AS key, choice, rigor, seconds, spread, seed, date,"
    "  seal, source, generator FROM wisdom JOIN merged ON merged.id = wisdom.key"
    "  ORDER BY date, wisdom.key;"
    "DELETE FROM wisdom;"
    "INSERT OR REPLACE INTO wisdom(key, choice, rigor, seconds, spread, seed, date, seal, source,"
    "  generator) SELECT key, choice, rigor, seconds, spread, seed, date, seal, source, generator"
    "  FROM learned ORDER BY rowid;"
    "DROP VIEW full_keys;"
    "CREATE TABLE keys_of_4("
    "  id INTEGER PRIMARY KEY, problem INTEGER NOT NULL REFERENCES problems,"
    "  device INTEGER NOT NULL REFERENCES devices, compiler TEXT NOT NULL,"
    "  protocol TEXT NOT NULL, UNIQUE(problem, device, compiler, protocol));"
    "INSERT INTO keys_of_4 SELECT id, problem, device, compiler, protocol FROM keys"
    "  WHERE id IN (SELECT kept FROM merged);"
    "DROP TABLE learned;"
    "DROP TABLE merged;"
    "DROP TABLE keys;"
    "ALTER TABLE keys_of_4 RENAME TO keys;"
    "CREATE VIEW full_keys AS SELECT keys.id AS id, ops.name AS op, definition, dtypes, sizes,"
    "  layout, devices.name AS device, isa, units, driver, compiler, protocol"
    "  FROM keys JOIN problems ON problems.id = keys.problem JOIN ops ON ops.id = problems.op"
    "  JOIN devices ON devices.id = keys.device;",

    // Which process measures a problem just now. Times are seconds since the machine started.
    "CREATE TABLE leases("
    "  key INTEGER PRIMARY KEY REFERENCES keys, token INTEGER NOT NULL, boot TEXT NOT NULL,"
    "  pid_namespace TEXT NOT NULL, pid INTEGER NOT NULL, started INTEGER NOT NULL,"
    "  taken INTEGER NOT NULL, renewed INTEGER NOT NULL);",

    // What problems have in common (patterns.h), and what each of them says. `mined`: the newest
    // outcome that its lessons know.
    "CREATE TABLE traits("
    "  key INTEGER PRIMARY KEY REFERENCES keys, class TEXT NOT NULL, dtype TEXT NOT NULL,"
    "  bucket TEXT NOT NULL, mined INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE lessons("
    "  problem TEXT NOT NULL, subject TEXT NOT NULL, family TEXT NOT NULL,"
    "  parameter TEXT NOT NULL, value INTEGER NOT NULL, op TEXT NOT NULL, class TEXT NOT NULL,"
    "  dtype TEXT NOT NULL, bucket TEXT NOT NULL, isa TEXT NOT NULL, date TEXT NOT NULL,"
    "  tried INTEGER NOT NULL, failed INTEGER NOT NULL, competed INTEGER NOT NULL,"
    "  ratio REAL NOT NULL, PRIMARY KEY(problem, subject, family, parameter, value));",

    // What a round started from, what it tried and hoped for, and how its source differs. What a
    // problem costs at least, and the text of its op: reports and logs need no definition file.
    "ALTER TABLE rounds ADD COLUMN base TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE rounds ADD COLUMN kind TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE rounds ADD COLUMN bottleneck TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE rounds ADD COLUMN predicted REAL;"
    "ALTER TABLE rounds ADD COLUMN tried INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE rounds ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE rounds ADD COLUMN difference TEXT NOT NULL DEFAULT '';"
    "CREATE TABLE costs("
    "  key INTEGER PRIMARY KEY REFERENCES keys, operations REAL NOT NULL, bytes REAL NOT NULL,"
    "  memory_seconds REAL NOT NULL, compute_seconds REAL NOT NULL);"
    "CREATE TABLE texts("
    "  op INTEGER PRIMARY KEY REFERENCES ops, text TEXT NOT NULL);",

    // What became of foreign kernels (foreign_outcomes.h), beside which kernels they were timed.
    "CREATE TABLE foreign_outcomes("
    "  id INTEGER PRIMARY KEY, key INTEGER NOT NULL REFERENCES keys, hash TEXT NOT NULL,"
    "  proof TEXT NOT NULL, file TEXT NOT NULL, reference TEXT NOT NULL, date TEXT NOT NULL,"
    "  kind TEXT NOT NULL, reason TEXT NOT NULL, cases INTEGER, seed INTEGER, samples INTEGER,"
    "  median REAL, spread REAL, reference_samples INTEGER, reference_median REAL,"
    "  reference_spread REAL, baseline_samples INTEGER, baseline_median REAL,"
    "  baseline_spread REAL, standing INTEGER, read INTEGER, registers INTEGER,"
    "  spill_bytes INTEGER, loop_spill_bytes INTEGER, load_bytes REAL, step_flops REAL,"
    "  tensor INTEGER, seal TEXT NOT NULL);"
    "CREATE INDEX foreign_outcomes_by_key ON foreign_outcomes(key, hash);",

    // What families expected of a measured candidate, and what a subject adds to that.
    "ALTER TABLE outcomes ADD COLUMN estimate REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE lessons ADD COLUMN fitted INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE lessons ADD COLUMN effect REAL NOT NULL DEFAULT 0;",
};

#define KEY "op, definition, dtypes, sizes, layout, device, isa, units, driver, compiler, protocol "
#define KEY_IS                                                                                     \
    "(SELECT id FROM full_keys WHERE op = ?1 AND definition = ?2 AND dtypes = ?3 AND sizes = ?4"   \
    " AND layout = ?5 AND device = ?6 AND isa = ?7 AND units = ?8 AND driver = ?9"                 \
    " AND compiler = ?10 AND protocol = ?11)"

// A choice or an override.
#define CHOICE_OR_OVERRIDE                                                                         \
    "CASE override WHEN '' THEN choice ELSE choice || ' (overridden by ' || override || ')' END"

#define OUTCOME                                                                                    \
    "kind, choice, source, bound, compile_seconds, samples, median, least, spread, abandoned, "    \
    "final, passed, seed, cases, skipped, elements, worst_relative, worst_rms, impostors, "        \
    "verdict, reason, emitted, estimate, generator, outcomes.seal, promise, promises.seal"         \
    " FROM outcomes JOIN candidates ON candidates.id = outcomes.candidate"                         \
    " LEFT JOIN promises ON promises.outcome = outcomes.id"

#define WISDOM "choice, rigor, seconds, spread, seed, date, source, generator, seal"

// The upserts return the id of the row, new or old.
const char *const kg_store_statements[KG_SQL_COUNT] = {
    [KG_SQL_BEGIN] = "BEGIN IMMEDIATE",
    [KG_SQL_COMMIT] = "COMMIT",
    [KG_SQL_ROLLBACK] = "ROLLBACK",

    [KG_SQL_ADD_OP] = "INSERT INTO ops(name, definition) VALUES(?, ?)"
                      " ON CONFLICT DO UPDATE SET name = name RETURNING id",
    [KG_SQL_ADD_PROBLEM] = "INSERT INTO problems(op, dtypes, sizes, layout) VALUES(?, ?, ?, ?)"
                           " ON CONFLICT DO UPDATE SET op = op RETURNING id",
    [KG_SQL_ADD_DEVICE] = "INSERT INTO devices(name, isa, units, driver) VALUES(?, ?, ?, ?)"
                          " ON CONFLICT DO UPDATE SET name = name RETURNING id",
    [KG_SQL_ADD_KEY] = "INSERT INTO keys(problem, device, compiler, protocol)"
                       " VALUES(?, ?, ?, ?)"
                       " ON CONFLICT DO UPDATE SET device = device RETURNING id",
    [KG_SQL_ADD_CANDIDATE] = "INSERT INTO candidates(choice, source) VALUES(?, ?)"
                             " ON CONFLICT DO UPDATE SET source = source RETURNING id",

    [KG_SQL_ADD_OUTCOME] =
        "INSERT INTO outcomes(key, candidate, date, kind, bound, compile_seconds, samples, median,"
        " least, spread, abandoned, final, passed, seed, cases, skipped, elements, worst_relative,"
        " worst_rms, impostors, verdict, reason, override, emitted, estimate, seal)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " RETURNING id",
    [KG_SQL_ADD_FORECAST] = "INSERT INTO promises(outcome, promise, seal) VALUES(?, ?, ?)",
    [KG_SQL_FIND_OUTCOME] = "SELECT " OUTCOME " WHERE outcomes.key = " KEY_IS
                            " AND choice = ?12 AND override = '' ORDER BY outcomes.id DESC LIMIT 1",
    [KG_SQL_FIND_EMITTED] = "SELECT " OUTCOME " WHERE outcomes.key = " KEY_IS
                            " AND choice = ?12 AND override = '' AND emitted = ?13"
                            " ORDER BY outcomes.id DESC LIMIT 1",
    [KG_SQL_EACH_OUTCOME] =
        "SELECT " OUTCOME " WHERE outcomes.id IN"
        " (SELECT max(outcomes.id) FROM outcomes JOIN candidates ON candidates.id = candidate"
        "  WHERE outcomes.key = " KEY_IS " AND override = '' GROUP BY choice)"
        " ORDER BY kind <> 'measured', abandoned, median, outcomes.id",
    [KG_SQL_HISTORY] =
        "SELECT " OUTCOME " WHERE outcomes.key = " KEY_IS " AND override = '' ORDER BY outcomes.id",

    [KG_SQL_SET_WISDOM] =
        "INSERT OR REPLACE INTO wisdom(key, choice, rigor, seconds, spread, seed, date, source,"
        " seal) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [KG_SQL_GET_WISDOM] = "SELECT " WISDOM " FROM wisdom WHERE key = " KEY_IS,
    [KG_SQL_NEAR_WISDOM] =
        "SELECT sizes, layout, " WISDOM " FROM wisdom JOIN full_keys ON full_keys.id = wisdom.key"
        " WHERE op = ?1 AND definition = ?2 AND dtypes = ?3 AND (sizes <> ?4 OR layout <> ?5)"
        " AND device = ?6 AND isa = ?7 AND units = ?8 AND driver = ?9 AND compiler = ?10"
        " AND protocol = ?11 ORDER BY wisdom.key",
    [KG_SQL_LIST_WISDOM] =
        "SELECT " KEY ", " WISDOM " FROM wisdom JOIN full_keys ON full_keys.id = wisdom.key"
        " WHERE ?1 = '' OR op GLOB ?1 ORDER BY op, dtypes, wisdom.key",
    [KG_SQL_FORGET_WISDOM] =
        "DELETE FROM wisdom WHERE key IN (SELECT id FROM full_keys WHERE ?1 = '' OR op GLOB ?1)",

    [KG_SQL_GET_LEASE] = "SELECT token, boot, pid_namespace, pid, started, taken, renewed"
                         " FROM leases WHERE key = " KEY_IS,
    [KG_SQL_SET_LEASE] =
        "INSERT OR REPLACE INTO leases(key, token, boot, pid_namespace, pid, started, taken,"
        " renewed) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
    [KG_SQL_RENEW_LEASE] =
        "UPDATE leases SET renewed = ?13 WHERE key = " KEY_IS " AND token = ?12 RETURNING key",
    [KG_SQL_DROP_LEASE] = "DELETE FROM leases WHERE key = " KEY_IS " AND token = ?12",

    [KG_SQL_NOTE_TRAITS] = "INSERT INTO traits(key, class, dtype, bucket) VALUES(?1, ?2, ?3, ?4)"
                           " ON CONFLICT(key) DO UPDATE SET class = ?2, dtype = ?3, bucket = ?4",
    [KG_SQL_UNMINED] = "SELECT id, " KEY ", class, dtype, bucket,"
                       " (SELECT max(id) FROM outcomes),"
                       " (SELECT max(date) FROM outcomes WHERE outcomes.key = full_keys.id)"
                       " FROM traits JOIN full_keys ON full_keys.id = traits.key"
                       " WHERE (mined = 0 AND traits.key IN (SELECT key FROM outcomes))"
                       " OR traits.key IN (SELECT key FROM outcomes"
                       "  WHERE outcomes.id > (SELECT max(mined) FROM traits))",
    [KG_SQL_SET_MINED] = "UPDATE traits SET mined = ? WHERE key = ?",
    [KG_SQL_ADD_LESSON] =
        "INSERT OR REPLACE INTO lessons(problem, subject, family, parameter, value, op, class,"
        " dtype, bucket, isa, date, tried, failed, competed, ratio, fitted, effect)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    // ?1: 0 by dtype and bucket, 1 by bucket, 2 by neither.
    [KG_SQL_EACH_LESSON] =
        "SELECT problem, subject, family, parameter, value, op, class,"
        " CASE WHEN ?1 < 1 THEN dtype ELSE '' END AS some_dtype,"
        " CASE WHEN ?1 < 2 THEN bucket ELSE '' END AS some_bucket,"
        " isa, date, tried, failed, competed, ratio, fitted, effect FROM lessons"
        " WHERE (?2 = '' OR class = ?2) AND (?3 = '' OR isa = ?3) AND (?4 = '' OR op <> ?4)"
        " ORDER BY isa, class, some_bucket, some_dtype, subject, family, parameter, value, date,"
        " problem",
    // By problem, the fastest first.
    // Of each choice for each problem, its speed as a share of the fastest's. Problems are counted
    // from 0; what has the same config follows each other.
    [KG_SQL_TIMES_OF_CLASS] =
        "WITH times AS (SELECT outcomes.key AS key, choice, min(median) AS seconds, traits.dtype AS"
        " dtype, traits.bucket AS bucket FROM outcomes"
        " JOIN candidates ON candidates.id = candidate JOIN traits ON traits.key = outcomes.key"
        " JOIN full_keys ON full_keys.id = outcomes.key"
        " WHERE kind = 'measured' AND median > 0 AND class = ?1 AND isa = ?2"
        " AND (?3 = '' OR op <> ?3) GROUP BY outcomes.key, choice)"
        " SELECT choice, dense_rank() OVER (ORDER BY key) - 1,"
        " min(seconds) OVER (PARTITION BY key) / seconds, dtype, bucket"
        " FROM times ORDER BY substr(choice, instr(choice, ': ')), choice, key",
    // With something measured.
    [KG_SQL_CLASSES] = "SELECT DISTINCT class, isa FROM traits"
                       " JOIN full_keys ON full_keys.id = traits.key"
                       " WHERE traits.key IN (SELECT key FROM outcomes WHERE kind = 'measured')"
                       " ORDER BY isa, class",

    [KG_SQL_ADD_FOREIGN] =
        "INSERT INTO foreign_outcomes(key, hash, proof, file, reference, date, kind, reason, cases,"
        " seed, samples, median, spread, reference_samples, reference_median, reference_spread,"
        " baseline_samples, baseline_median, baseline_spread, standing, read, registers,"
        " spill_bytes, loop_spill_bytes, load_bytes, step_flops, tensor, seal)"
        " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
        " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [KG_SQL_FIND_FOREIGN] =
        "SELECT file, reference, date, kind, reason, cases, seed, samples, median, spread,"
        " reference_samples, reference_median, reference_spread, baseline_samples, baseline_median,"
        " baseline_spread, standing, read, registers, spill_bytes, loop_spill_bytes, load_bytes,"
        " step_flops, tensor, seal FROM foreign_outcomes WHERE key = " KEY_IS
        " AND hash = ?12 AND proof = ?13"
        " ORDER BY id DESC LIMIT 1",

    [KG_SQL_ADD_ROUND] = "INSERT INTO rounds(key, date, number, diagnosis, change, choice, before,"
                         " after, baseline, roofline, result, base, kind, bottleneck, predicted,"
                         " tried, kept, difference)"
                         " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [KG_SQL_EACH_ROUND] = "SELECT date, number, diagnosis, change, choice, before, after, baseline,"
                          " roofline, result, base, kind, bottleneck, predicted, tried, kept,"
                          " difference FROM rounds WHERE key = " KEY_IS " ORDER BY id",
    [KG_SQL_NOTE_COST] = "INSERT OR REPLACE INTO costs(key, operations, bytes, memory_seconds,"
                         " compute_seconds) VALUES(?, ?, ?, ?, ?)",
    [KG_SQL_GET_COST] = "SELECT operations, bytes, memory_seconds, compute_seconds FROM costs"
                        " WHERE key = " KEY_IS,
    [KG_SQL_NOTE_TEXT] = "INSERT OR REPLACE INTO texts(op, text) SELECT problems.op, ?2 FROM keys"
                         " JOIN problems ON problems.id = keys.problem WHERE keys.id = ?1",
    [KG_SQL_GET_TEXT] = "SELECT text FROM texts JOIN ops ON ops.id = texts.op"
                        " WHERE name = ? AND definition = ?",
    [KG_SQL_LOG_KEYS] = "SELECT id, " KEY " FROM full_keys WHERE (?1 = '' OR op = ?1)"
                        " AND (id IN (SELECT key FROM outcomes) OR id IN (SELECT key FROM rounds)"
                        "      OR id IN (SELECT key FROM wisdom)) ORDER BY op, id",
    [KG_SQL_LOG_COUNTS] = "SELECT kind, count(*), min(date), max(date) FROM outcomes"
                          " WHERE key = " KEY_IS " AND NOT final GROUP BY kind ORDER BY kind",
    [KG_SQL_LOG_BEST] =
        "SELECT " CHOICE_OR_OVERRIDE ", min(median), spread, samples, bound, date FROM outcomes"
        " JOIN candidates ON candidates.id = candidate"
        " WHERE key = " KEY_IS " AND kind = 'measured' AND NOT abandoned"
        " GROUP BY choice, override ORDER BY min(median), choice LIMIT 10",
    [KG_SQL_LOG_FAILED] =
        "SELECT " CHOICE_OR_OVERRIDE ", kind, reason, max(date) FROM outcomes"
        " JOIN candidates ON candidates.id = candidate"
        " WHERE key = " KEY_IS " AND kind IN ('compile', 'wrong', 'fault', 'timeout')"
        " GROUP BY choice, override, kind, reason"
        " ORDER BY max(outcomes.id) LIMIT 10",
};
