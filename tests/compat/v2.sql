BEGIN TRANSACTION;
CREATE TABLE changes (
        seq INTEGER PRIMARY KEY,
        commit_seq INTEGER NOT NULL REFERENCES commits (seq),
        entity TEXT NOT NULL,
        entity_id TEXT NOT NULL,
        before TEXT,
        after TEXT,
        trace INTEGER
    );
INSERT INTO "changes" VALUES(1,1,'memory','010000000001',NULL,'{"id":"010000000001","content":"The harbour cafe closes at five","namespace":"default","created_at":1700000000.5,"last_confirmed_at":1700000000.5,"depth":0.0,"access_count":0,"last_accessed":null,"confirmation_count":0,"decay_profile":"standard","expires_at":null,"links":[],"contradicts":[],"supersedes":null,"superseded_by":null,"source":{}}',930810186326792563);
INSERT INTO "changes" VALUES(2,1,'key','020000000001',NULL,'{"id":"020000000001","concept":"harbour cafe","key_type":"concept","aliases":[],"learned":[],"candidates":[]}',-4612559899981134426);
INSERT INTO "changes" VALUES(3,1,'link','020000000001:010000000001',NULL,'{"key_id":"020000000001","memory_id":"010000000001","weight":0.5,"position":0}',NULL);
INSERT INTO "changes" VALUES(4,2,'memory','010000000003',NULL,'{"id":"010000000003","content":"동건이는 딸기를 좋아한다","namespace":"프로젝트","created_at":1700090000.0,"last_confirmed_at":1700090000.0,"depth":0.0,"access_count":0,"last_accessed":null,"confirmation_count":0,"decay_profile":"transient","expires_at":4000000000.0,"links":[],"contradicts":[],"supersedes":null,"superseded_by":null,"source":{}}',1238991925076625987);
INSERT INTO "changes" VALUES(5,2,'key','020000000002',NULL,'{"id":"020000000002","concept":"동건","key_type":"name","aliases":[],"learned":[],"candidates":[]}',-7218883446959031124);
INSERT INTO "changes" VALUES(6,2,'key','020000000003',NULL,'{"id":"020000000003","concept":"딸기","key_type":"concept","aliases":["strawberry"],"learned":[],"candidates":[]}',-1596579804784746975);
INSERT INTO "changes" VALUES(7,2,'link','020000000002:010000000003',NULL,'{"key_id":"020000000002","memory_id":"010000000003","weight":1.0,"position":0}',NULL);
INSERT INTO "changes" VALUES(8,2,'link','020000000003:010000000003',NULL,'{"key_id":"020000000003","memory_id":"010000000003","weight":0.1,"position":1}',NULL);
INSERT INTO "changes" VALUES(9,3,'memory','010000000001','{"id":"010000000001","content":"The harbour cafe closes at five","namespace":"default","created_at":1700000000.5,"last_confirmed_at":1700000000.5,"depth":0.0,"access_count":0,"last_accessed":null,"confirmation_count":0,"decay_profile":"standard","expires_at":null,"links":[],"contradicts":[],"supersedes":null,"superseded_by":null,"source":{}}','{"id":"010000000001","content":"The harbour cafe closes at five","namespace":"default","created_at":1700000000.5,"last_confirmed_at":1700000000.5,"depth":0.015,"access_count":0,"last_accessed":null,"confirmation_count":0,"decay_profile":"standard","expires_at":null,"links":[],"contradicts":[],"supersedes":null,"superseded_by":"010000000002","source":{}}',930810186326792563);
INSERT INTO "changes" VALUES(10,3,'memory','010000000002',NULL,'{"id":"010000000002","content":"The harbour café closes at six — 여섯 시\nand on Sundays at \"four\"","namespace":"default","created_at":1700086400.25,"last_confirmed_at":1700172800.0,"depth":0.05,"access_count":3,"last_accessed":1700259200.0,"confirmation_count":1,"decay_profile":"stable","expires_at":null,"links":["010000000003"],"contradicts":["00000000dead"],"supersedes":"010000000001","superseded_by":null,"source":{"tool":"correct","host_agent":"claude","메모":"said at lunch"}}',5606186097864546302);
INSERT INTO "changes" VALUES(11,3,'link','020000000001:010000000002',NULL,'{"key_id":"020000000001","memory_id":"010000000002","weight":1.1,"position":0}',NULL);
INSERT INTO "changes" VALUES(12,3,'link','020000000002:010000000002',NULL,'{"key_id":"020000000002","memory_id":"010000000002","weight":3.0,"position":1}',NULL);
INSERT INTO "changes" VALUES(13,4,'key','020000000001','{"id":"020000000001","concept":"harbour cafe","key_type":"concept","aliases":[],"learned":[],"candidates":[]}','{"id":"020000000001","concept":"harbour cafe","key_type":"concept","aliases":["café at the harbour"],"learned":[{"alias":"the place by the boats","added_at":1700200000.0,"hits":2,"namespaces":["default"]}],"candidates":[{"query":"where we had lunch","count":2,"last_seen":1700210000.0}]}',-4612559899981134426);
CREATE TABLE commits (
        seq INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        action TEXT NOT NULL,
        tool TEXT NOT NULL,
        session TEXT,
        host_agent TEXT,
        host_session TEXT,
        host_turn TEXT,
        host_prompt TEXT,
        note TEXT
    );
INSERT INTO "commits" VALUES(1,1700000000.5,'remember','remember','session-1','claude','0b9d1f4e-8a53-4a3c-9f0e-2f1f5f6d7a10','3','prompt-1',NULL);
INSERT INTO "commits" VALUES(2,1700090000.0,'remember','remember','session-1','claude','0b9d1f4e-8a53-4a3c-9f0e-2f1f5f6d7a10','3','prompt-1',NULL);
INSERT INTO "commits" VALUES(3,1700086400.25,'correct','remember','session-1','claude','0b9d1f4e-8a53-4a3c-9f0e-2f1f5f6d7a10','3','prompt-1','keys were inherited');
INSERT INTO "commits" VALUES(4,1700210000.0,'learn','read_memory',NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE keys (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        concept TEXT NOT NULL,
        key_type TEXT NOT NULL,
        aliases TEXT NOT NULL,
        learned TEXT NOT NULL,
        candidates TEXT NOT NULL
    );
INSERT INTO "keys" VALUES(1,'020000000001','harbour cafe','concept','["café at the harbour"]','[["the place by the boats",1700200000.0,2,["default"]]]','[["where we had lunch",2,1700210000.0]]');
INSERT INTO "keys" VALUES(2,'020000000002','동건','name','[]','[]','[]');
INSERT INTO "keys" VALUES(3,'020000000003','딸기','concept','["strawberry"]','[]','[]');
CREATE TABLE links (
        seq INTEGER PRIMARY KEY,
        key_id TEXT NOT NULL REFERENCES keys (id) ON DELETE CASCADE,
        memory_id TEXT NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
        weight REAL NOT NULL,
        position INTEGER NOT NULL,
        surfaces TEXT NOT NULL DEFAULT '[]',
        UNIQUE (key_id, memory_id)
    );
INSERT INTO "links" VALUES(1,'020000000001','010000000001',0.5,0,'[]');
INSERT INTO "links" VALUES(2,'020000000002','010000000003',1.0,0,'[]');
INSERT INTO "links" VALUES(3,'020000000003','010000000003',0.1,1,'["strawberry","딸기"]');
INSERT INTO "links" VALUES(4,'020000000001','010000000002',1.1,0,'["café at the harbour"]');
INSERT INTO "links" VALUES(5,'020000000002','010000000002',3.0,1,'[]');
CREATE TABLE memories (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        content TEXT NOT NULL,
        namespace TEXT NOT NULL,
        created_at REAL NOT NULL,
        last_confirmed_at REAL NOT NULL,
        depth REAL NOT NULL,
        access_count INTEGER NOT NULL,
        last_accessed REAL,
        confirmation_count INTEGER NOT NULL,
        decay_profile TEXT NOT NULL,
        expires_at REAL,
        links TEXT NOT NULL,
        contradicts TEXT NOT NULL,
        supersedes TEXT,
        superseded_by TEXT,
        source TEXT NOT NULL
    );
INSERT INTO "memories" VALUES(1,'010000000001','The harbour cafe closes at five','default',1700000000.5,1700000000.5,0.015,0,NULL,0,'standard',NULL,'[]','[]',NULL,'010000000002','{}');
INSERT INTO "memories" VALUES(2,'010000000003','동건이는 딸기를 좋아한다','프로젝트',1700090000.0,1700090000.0,0.0,0,NULL,0,'transient',4000000000.0,'[]','[]',NULL,NULL,'{}');
INSERT INTO "memories" VALUES(3,'010000000002','The harbour café closes at six — 여섯 시
and on Sundays at "four"','default',1700086400.25,1700172800.0,0.05,3,1700259200.0,1,'stable',NULL,'["010000000003"]','["00000000dead"]','010000000001',NULL,'{"tool":"correct","host_agent":"claude","메모":"said at lunch"}');
CREATE TABLE meta (
        seq INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        value TEXT NOT NULL
    );
INSERT INTO "meta" VALUES(1,'embedding_fingerprint','builtin:use-multilingual-v3');
CREATE TABLE purges (
        seq INTEGER PRIMARY KEY,
        ids TEXT NOT NULL
    );
CREATE TABLE requests (
        seq INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        at REAL NOT NULL,
        response TEXT NOT NULL
    );
INSERT INTO "requests" VALUES(1,'request-1',1700086400.25,'{"new_id":"010000000002","superseded":"010000000001"}');
CREATE TABLE spaces (
        seq INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL UNIQUE
    );
INSERT INTO "spaces" VALUES(1,'builtin:use-multilingual-v3');
CREATE TABLE vectors (
        seq INTEGER PRIMARY KEY,
        space INTEGER NOT NULL REFERENCES spaces (seq) ON DELETE CASCADE,
        text_hash BLOB NOT NULL,
        vector BLOB NOT NULL,
        UNIQUE (space, text_hash)
    );
INSERT INTO "vectors" VALUES(1,1,X'E752F5BB81E92C296A9E21A68BDDA642',X'000102030405060708090A0B0C0D0E0F');
CREATE INDEX links_by_memory ON links (memory_id);
CREATE INDEX requests_by_time ON requests (at);
CREATE INDEX changes_by_entity ON changes (entity_id);
CREATE INDEX changes_by_trace ON changes (trace) WHERE trace IS NOT NULL;
COMMIT;
PRAGMA user_version = 2;
