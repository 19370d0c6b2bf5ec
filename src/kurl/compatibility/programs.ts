/** The programs of kURL's package kurl-bin-utils, which add-ons call below `bin/`, and what stands in for them. */
import { rows, type Row } from './rows.ts';

const ABSENT = 'absent: not supported without the package, and it says so';

const NOTES: Readonly<Record<string, string>> = {
  bashmerge: "same: all of kURL's flags are taken",
  config: ABSENT,
  'docker-config': ABSENT,
  kurl: 'differs: the verbs that add-ons call, see below; other verbs need the package, and it is said',
  installermerge: 'same: specs with mistakes are refused',
  network: ABSENT,
  pvmigrate: ABSENT,
  toml: ABSENT,
  veleroplugin: ABSENT,
  vendorflights: 'same: specs with mistakes are refused',
  yamltobash: 'differs: `$x`, backticks and `$(…)` in a value stay text when its file is sourced; mistakes are refused',
};

const NAMES = `
bashmerge bcrypt config docker-config htpasswd installermerge kurl network pvmigrate subnet toml
veleroplugin vendorflights yamltobash yamlutil
`;

export const BIN_PROGRAMS: readonly Row[] = rows(NAMES, NOTES);

const MOVED = 'absent: storage is not moved: with kURL, before moving over';
const TEXT = 'same: what it says on the way is in words of this tool';

const VERB_NOTES: Readonly<Record<string, string>> = {
  'netutil nodes-connectivity':
    'differs: the image must be named; whether all arrived is read from the log of the node that was called',
  'rook health': TEXT,
  'rook wait-for-health': TEXT,
  'rook wait-for-rook-version': `${TEXT}; an API server that does not answer is no version that is reached`,
  'rook wait-for-ceph-version': `${TEXT}; an API server that does not answer is no version that is reached`,
  'rook flexvolume-to-csi': MOVED,
  'rook hostpath-to-block': MOVED,
  'rook has-sufficient-blockdevices': MOVED,
  'cluster check-free-disk-space':
    'differs: a pod with `df` looks at the folder of OpenEBS on each node; no volume is made and removed for it',
  'cluster migrate-multinode-storage': MOVED,
  'cluster nodes-missing-images': "absent: of kURL's own scripts; `curlew load-images` loads what a node lacks",
  'cluster preflight': "absent: of kURL's own scripts; `curlew preflight` judges the cluster",
  'host preflight': "absent: of kURL's own scripts; `curlew preflight` judges the machine",
  'host protectedid': "absent: of kURL's own scripts; nothing is reported",
  'host hostname': "absent: of kURL's own scripts; get_local_node_name says it",
  'longhorn prepare-for-migration': MOVED,
  'longhorn rollback-migration-replicas': MOVED,
  'object-store sync': "absent: called in pods of kURL's helper image only, which bring the program",
  'sync-object-store': "absent: called in pods of kURL's helper image only, which bring the program",
  version: 'absent: there is no release of kURL in use',
};

const VERB_NAMES: readonly string[] = [
  'format-address',
  'netutil format-ip-address',
  'netutil iface-from-ip',
  'netutil default-gateway-iface',
  ...Object.keys(VERB_NOTES),
];

/** The verbs of kURL's program `kurl`, and which of them work without the package. */
export const KURL_VERBS: readonly Row[] = rows(VERB_NAMES, VERB_NOTES);
