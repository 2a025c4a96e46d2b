-- A history of version 1 with two nights, as `sqlite3 .dump` writes it: what was published is never changed.
BEGIN TRANSACTION;
CREATE TABLE era (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
INSERT INTO "era" VALUES(1,'e2f22860e6b30d5af304d40bad1b3752','[["driver", "580.1"], ["profile", "nightly"], ["station", "host"]]');
CREATE TABLE figure (
            line INTEGER NOT NULL REFERENCES line, night INTEGER NOT NULL REFERENCES night, value REAL, again REAL,
            flags INTEGER NOT NULL, PRIMARY KEY (line, night)) WITHOUT ROWID;
INSERT INTO "figure" VALUES(1,1,55.25,NULL,0);
INSERT INTO "figure" VALUES(1,2,50.5,50.25,1);
CREATE TABLE line (
            id INTEGER PRIMARY KEY, check_id TEXT NOT NULL, measurement TEXT NOT NULL, component TEXT NOT NULL, unit TEXT NOT NULL,
            serial TEXT NOT NULL, UNIQUE (measurement, component, check_id, unit, serial));
INSERT INTO "line" VALUES(1,'link.copy','copy_h2d','gpu0','GB/s','GPU-a');
CREATE TABLE night (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL UNIQUE, folder TEXT, utc TEXT NOT NULL, day REAL NOT NULL,
            seconds REAL, profile TEXT NOT NULL, scope TEXT NOT NULL, verdict TEXT NOT NULL, virtual INTEGER NOT NULL,
            postponed INTEGER NOT NULL, apart TEXT, era INTEGER NOT NULL REFERENCES era, parts INTEGER NOT NULL REFERENCES parts,
            pruned INTEGER NOT NULL DEFAULT 0);
INSERT INTO "night" VALUES(1,'2026-01-01T02-00-00Z-aaaa','2026-01-01T02-00-00Z-aaaa','2026-01-01T02:00:00.000Z',20454.0833,90.0,'nightly','full','PASS',0,0,NULL,1,1,0);
INSERT INTO "night" VALUES(2,'2026-01-02T02-00-00Z-bbbb',NULL,'2026-01-02T02:00:00.000Z',20455.0833,90.0,'nightly','full','FAIL',0,0,NULL,1,1,0);
CREATE TABLE parts (id INTEGER PRIMARY KEY, identities TEXT NOT NULL UNIQUE);
INSERT INTO "parts" VALUES(1,'{"gpu0": "GPU-a"}');
CREATE INDEX night_by_era ON night (era, seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('night',2);
COMMIT;
PRAGMA application_id = 1382502514;
PRAGMA user_version = 1;
