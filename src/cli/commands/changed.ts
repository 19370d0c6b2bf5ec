/** `curlew changed`: which add-ons a build would make again, for the matrix of a CI job. */
import { changed } from '../../app/changed.ts';
import { printableJson } from '../../core/json.ts';
import { command } from '../command.ts';
import { BUILD_OPTIONS, STORE_OPTIONS } from '../options.ts';
import { wholeNumber } from '../values.ts';

const { arch, cache, 'image-format': form, ...rest } = BUILD_OPTIONS;
const { out: _out, jobs: _jobs, locked: _locked, 'update-lock': _update, ...network } = rest;

export const changedCommand = command({
  name: 'changed',
  operands: '[addon…]',
  options: {
    from: {
      type: 'string',
      required: 'say with --from which store to compare with',
      value: 'STORE',
      help: 'store that holds the release',
    },
    since: { type: 'string', value: 'R', help: 'release to compare with (default: the current one)' },
    batch: {
      type: 'string',
      read: wholeNumber,
      value: 'N',
      help: 'print a matrix of jobs, N add-ons each, as one line of JSON',
    },
    arch,
    'image-format': form,
    cache,
    ...STORE_OPTIONS,
    ...network,
  },
  details:
    'Compares own files, what tags and addresses stand for now, and what container builds are made from, with what the\n' +
    'release recorded. Builds nothing, and fetches manifests and headers only.',
  examples: ['curlew changed --from /srv/dist', 'curlew changed --from /srv/dist --since v1.4.0 --batch 5'],
  run: async ({ operands, options }, context) => changed({ addons: operands, ...options }, context),
  render: ({ since, changed: all, unchanged, matrix }, { options }) => {
    if (options.batch !== undefined) return printableJson(matrix);
    const lines = all.map(({ name, version, change, because }) => `${name} ${version}: ${change}: ${because}`);
    return [...lines, `${all.length} differ from ${since}, ${unchanged} do not`].join('\n');
  },
});
