-- A history of version 2, the last one in SQLite, as `sqlite3 .dump` writes it.
PRAGMA application_id = 1382502514;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE era (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, facts TEXT NOT NULL);
INSERT INTO "era" VALUES(1,'e2f22860e6b30d5af304d40bad1b3752','[["driver", "580.1"], ["profile", "nightly"], ["station", "host"]]');
INSERT INTO "era" VALUES(2,'6c2a632661a2d1317eb30c5af01dfee4','[["driver", "590.1"], ["profile", "nightly"], ["station", "host"]]');
CREATE TABLE figure (
            line INTEGER NOT NULL REFERENCES line, night INTEGER NOT NULL REFERENCES night,
            value REAL, again REAL, flags INTEGER NOT NULL,
            PRIMARY KEY (line, night)) WITHOUT ROWID;
INSERT INTO "figure" VALUES(1,2,50.5,49.25,5);
INSERT INTO "figure" VALUES(1,3,52.0,NULL,0);
INSERT INTO "figure" VALUES(1,5,53.0,NULL,0);
INSERT INTO "figure" VALUES(2,2,NULL,NULL,2);
CREATE TABLE line (
            id INTEGER PRIMARY KEY, check_id TEXT NOT NULL, measurement TEXT NOT NULL,
            component TEXT NOT NULL, unit TEXT NOT NULL, serial TEXT NOT NULL,
            UNIQUE (measurement, component, check_id, unit, serial));
INSERT INTO "line" VALUES(1,'link.copy','copy_h2d','gpu0','GB/s','GPU-a');
INSERT INTO "line" VALUES(2,'link.copy','copy_h2d','gpu1','GB/s','');
CREATE TABLE night (
            seq INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL UNIQUE, folder TEXT,
            utc TEXT NOT NULL, day REAL NOT NULL, seconds REAL, profile TEXT NOT NULL,
            scope TEXT NOT NULL, verdict TEXT NOT NULL, virtual INTEGER NOT NULL,
            postponed INTEGER NOT NULL, apart TEXT, era INTEGER NOT NULL REFERENCES era,
            parts INTEGER NOT NULL REFERENCES parts, pruned INTEGER NOT NULL DEFAULT 0, told TEXT);
INSERT INTO "night" VALUES(1,'run-00001',NULL,'2026-01-01T00:00:00.000Z',20001.0,90.0,'nightly','full','PASS',0,0,NULL,1,1,1,NULL);
INSERT INTO "night" VALUES(2,'run-00002','run-00002','2026-01-01T00:00:00.000Z',20002.0,90.0,'nightly','full','FAIL',0,0,NULL,1,1,0,NULL);
INSERT INTO "night" VALUES(3,'run-00003',NULL,'2026-01-01T00:00:00.000Z',20003.0,NULL,'nightly','full','PASS',0,0,'salvaged',1,1,0,NULL);
INSERT INTO "night" VALUES(4,'run-00004',NULL,'2026-01-01T00:00:00.000Z',20004.0,90.0,'nightly','full','UNJUDGED',0,1,NULL,1,1,0,NULL);
INSERT INTO "night" VALUES(5,'run-00005','run-00005','2026-01-01T00:00:00.000Z',3.0,90.0,'nightly','full','PASS',1,0,NULL,2,1,0,'{"birth":"birth","known":[{"part":"","what":"kernel","now":"6.13","since":"2026-01-01"}]}');
CREATE TABLE parts (id INTEGER PRIMARY KEY, identities TEXT NOT NULL UNIQUE);
INSERT INTO "parts" VALUES(1,'{"gpu0": "GPU-a"}');
CREATE INDEX night_by_era ON night (era, seq);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('night',5);
COMMIT;
