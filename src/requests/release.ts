/** Requests about the releases of a store. */
import { age, count, flag, path, place, text, texts } from '../core/field.ts';
import { request } from '../core/request.ts';
import { CACHE } from './build.ts';
import { NETWORK, STORE, WEB } from './connection.ts';
import { KEY, MAKE_CURRENT, SIGNER } from './trust.ts';

const required = 'add --from with a store';
const release = text('R', 'the release (default: the current one)', { offers: 'release' });
const jobs = count('N', 'concurrent packages (default: 8)');

export const VERSIONS = request('versions', {
  addons: texts('name[@version]', 'add-ons, or versions of add-ons to resolve (default: all)', {
    operand: true,
    offers: 'published',
  }),
  from: place('STORE|URL', 'the store, or a web server with a store', { required }),
  release,
  since: text('R', 'show what has changed since this release', { offers: 'release' }),
  ...KEY,
  ...STORE,
  ...WEB,
});
export const PROMOTE = request('promote', {
  from: place('STORE@R', 'source store (R: default is its current release)', { required }),
  to: place('STORE@R', 'target store, created if missing (R: default is the same release string)', {
    required: 'add --to with a store',
  }),
  deep: flag('read every copied package and compare its digest'),
  stream: flag('copy through this machine if the stores cannot copy from each other'),
  ...MAKE_CURRENT,
  dryRun: flag('check and show the plan, and write nothing'),
  jobs,
  ...SIGNER,
  ...KEY,
  ...STORE,
});
/** With both `keep` and `olderThan`, a release is removed only if neither keeps it. */
export const PRUNE = request(
  'prune',
  {
    from: place('STORE', 'the store to prune', { required }),
    keep: count('N', 'keep the N newest releases'),
    olderThan: age('AGE', 'keep releases younger than this, such as 30d, 12h or 8w'),
    dryRun: flag('show what would be removed, and remove nothing'),
    jobs: count('N', 'concurrent deletions (default: 8)'),
    ...STORE,
  },
  { yes: flag('remove without asking', { short: 'y' }) },
);
export const REINDEX = request('reindex', {
  store: place('STORE', 'the store', { operand: true, required: 'specify one store' }),
  release,
  dryRun: flag('show what could be restored, and write nothing'),
  jobs,
  ...STORE,
});
export const IMPORT_EXTERNAL = request('import-external', {
  file: path('versions.json', 'a list of versions, or an object of such lists by add-on', {
    operand: true,
    required: 'specify one versions.json',
  }),
  to: place('STORE', 'store for external/: s3://bucket/prefix, or a folder, created if missing', {
    required: 'add --to with the target store',
  }),
  name: text('NAME', 'the add-on, if the file contains a list'),
  jobs: count('N', 'concurrent packages (default: 4)', { short: 'j' }),
  dryRun: flag('show which versions would be imported, and write nothing'),
  ...CACHE,
  ...STORE,
  ...NETWORK,
});
