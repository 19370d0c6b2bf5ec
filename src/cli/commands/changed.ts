/** `curlew changed`: lists the add-ons that need a build, for the matrix of a CI job. */
import { printableJson } from '../../core/json.ts';
import { command, useCase } from '../command.ts';
import { BUILD_OPTIONS, STORE_OPTIONS } from '../options.ts';
import { wholeNumber } from '../values.ts';

const changed = useCase(async () => (await import('../../app/changed.ts')).changed);

const { arch, cache, 'image-format': form, ...rest } = BUILD_OPTIONS;
const { out: _out, jobs: _jobs, locked: _locked, 'update-lock': _update, ...network } = rest;

export const changedCommand = command({
  name: 'changed',
  operands: '[addon…]',
  options: {
    from: {
      type: 'string',
      required: 'add --from with the store to compare with',
      value: 'STORE',
      help: 'store with the release',
    },
    since: { type: 'string', value: 'R', help: 'release to compare with (default: the current one)' },
    batch: {
      type: 'string',
      read: wholeNumber,
      value: 'N',
      help: 'print a job matrix with N add-ons per job, as one line of JSON',
    },
    arch,
    'image-format': form,
    cache,
    ...STORE_OPTIONS,
    ...network,
  },
  details:
    "Compares the add-ons' files, what their tags and addresses currently resolve to, and the inputs of container builds with\n" +
    "the release's records. Builds nothing, and fetches only manifests and headers.",
  examples: ['curlew changed --from /srv/dist', 'curlew changed --from /srv/dist --since v1.4.0 --batch 5'],
  run: async ({ operands, options }, context) => changed({ addons: operands, ...options }, context),
  render: ({ since, changed: all, unchanged, matrix }, { options }) => {
    if (options.batch !== undefined) return printableJson(matrix);
    const lines = all.map(({ name, version, change, because }) => `${name} ${version}: ${change}: ${because}`);
    return [...lines, `${all.length} differ from ${since}, ${unchanged} do not`].join('\n');
  },
});
