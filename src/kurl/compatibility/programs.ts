/** The programs of kURL's package kurl-bin-utils, which add-ons call below `bin/`, and what replaces them. */
import { rows, type Row } from './rows.ts';

const ABSENT = 'absent: not supported without the package; it prints a message';

const NOTES: Readonly<Record<string, string>> = {
  bashmerge: 'same: accepts all flags of kURL',
  config: ABSENT,
  'docker-config': ABSENT,
  kurl: 'differs: only the verbs that add-ons call, see below; other verbs need the package, and a message says so',
  installermerge: 'same: specs with errors are rejected',
  network: ABSENT,
  pvmigrate: ABSENT,
  toml: ABSENT,
  veleroplugin: ABSENT,
  vendorflights: 'same: specs with errors are rejected',
  yamltobash:
    'differs: `$x`, backticks and `$(…)` in a value stay text when the output is sourced; specs with errors are rejected',
};

const NAMES = `
bashmerge bcrypt config docker-config htpasswd installermerge kurl network pvmigrate subnet toml
veleroplugin vendorflights yamltobash yamlutil
`;

export const BIN_PROGRAMS: readonly Row[] = rows(NAMES, NOTES);

const MOVED = 'absent: storage is not migrated: migrate it with kURL before the switch';
const TEXT = 'same: progress messages are worded differently';

const VERB_NOTES: Readonly<Record<string, string>> = {
  'netutil nodes-connectivity': 'differs: the image is required; the result comes from the log of the listening node',
  'rook health': TEXT,
  'rook wait-for-health': TEXT,
  'rook wait-for-rook-version': `${TEXT}; while the API server does not respond, the version counts as not reached`,
  'rook wait-for-ceph-version': `${TEXT}; while the API server does not respond, the version counts as not reached`,
  'rook flexvolume-to-csi': MOVED,
  'rook hostpath-to-block': MOVED,
  'rook has-sufficient-blockdevices': MOVED,
  'cluster check-free-disk-space':
    'differs: a pod runs `df` on the OpenEBS folder of each node; no temporary volume is created',
  'cluster migrate-multinode-storage': MOVED,
  'cluster nodes-missing-images':
    "absent: used by kURL's own scripts only; `curlew load-images` loads the missing images of a node",
  'cluster preflight': "absent: used by kURL's own scripts only; `curlew preflight` checks the cluster",
  'host preflight': "absent: used by kURL's own scripts only; `curlew preflight` checks the machine",
  'host protectedid': "absent: used by kURL's own scripts only; nothing is reported",
  'host hostname': "absent: used by kURL's own scripts only; get_local_node_name prints it",
  'longhorn prepare-for-migration': MOVED,
  'longhorn rollback-migration-replicas': MOVED,
  'object-store sync': 'absent: called only in pods of the image in KURL_UTIL_IMAGE, which contains the program',
  'sync-object-store': 'absent: called only in pods of the image in KURL_UTIL_IMAGE, which contains the program',
  version: 'absent: no release of kURL is in use',
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
