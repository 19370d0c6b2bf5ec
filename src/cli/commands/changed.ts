/** `curlew changed`: lists the add-ons that need a build, for the matrix of a CI job. */
import { CHANGED } from '../../requests/build.ts';
import { NOTHING_WRITTEN } from '../../core/errors.ts';
import { printableJson } from '../../core/json.ts';
import { commandFor } from '../command.ts';

export const command = commandFor(CHANGED, {
  details:
    "Compares the add-ons' files, what their tags and addresses currently resolve to, and the inputs of container builds with\n" +
    "the release's records. Builds nothing, and fetches only manifests and headers. curlew versions --since compares two releases.",
  examples: ['curlew changed --from /srv/dist', 'curlew changed --from /srv/dist --since v1.4.0 --batch 5'],
  left: NOTHING_WRITTEN,
  run: async ({ request }, context) => (await import('../../app/changed.ts')).changed(request, context),
  render: ({ since, changed: all, unchanged, matrix }, { request }) => {
    if (request.batch !== undefined) return printableJson(matrix);
    const lines = all.map(({ name, version, change, because }) => `${name} ${version}: ${change}: ${because}`);
    return [...lines, `${all.length} differ from ${since}, ${unchanged} do not`].join('\n');
  },
});
