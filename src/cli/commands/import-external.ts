/** `curlew import-external`: imports add-ons of other publishers to a store, for kURL's readers. */
import { IMPORT_EXTERNAL } from '../../requests/release.ts';
import { counted } from '../../core/counted.ts';
import { commandFor } from '../command.ts';

export const command = commandFor(IMPORT_EXTERNAL, {
  details:
    'The file is a list of {version, url, kurlVersionCompatibilityRange, isPrerelease, sha256Sum}, or an object of such\n' +
    'lists by add-on. Packages become external/<name>-<version>.tar.gz, and external/addon-registry.json names them with\n' +
    'the computed SHA-256. An imported version never changes, except that a prerelease\n' +
    'may be released.',
  examples: [
    'curlew import-external versions.json --name acme --to /srv/bucket',
    'curlew import-external versions.json --to s3://bucket',
  ],
  left: 'the same command continues; the store lists the packages only when all of them are there',
  run: async ({ request }, context) => (await import('../../app/import-external.ts')).importExternal(request, context),
  listsSteps: true,
  render: ({ store, dryRun, versions }) => {
    const would = (outcome: string): string => (dryRun && outcome !== 'present' ? `would be ${outcome}` : outcome);
    const lines = versions.map(({ name, version, outcome }) => `${name} ${version}: ${would(outcome)}`);
    const end = `${counted(versions.length, 'version')} in external/addon-registry.json`;
    return [...lines, `${store}: ${end}${dryRun ? '; nothing was written' : ''}`].join('\n');
  },
});
