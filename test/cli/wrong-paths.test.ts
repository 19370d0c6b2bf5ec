/** Files in the place of folders, empty files, and names that are too long: what failed, on what, why, and what to do next. */
import * as assert from '../support/assert.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/wrong-paths');
const LONG = 'x'.repeat(300);
const DAMAGED = 'the file is damaged, incomplete or not a curlew package: fetch or build it again';

for (const [title, words, exitCode, text] of [
  ['an empty package', 'inspect empty', 16, `PACKAGE_INVALID: BOX/empty: it is empty hint: ${DAMAGED}`],
  ['a short package', 'verify short', 16, `PACKAGE_INVALID: BOX/short: too short to be a package hint: ${DAMAGED}`],
  [
    'a file for the folder of a bundle',
    'install --dir empty --root t --dry-run',
    25,
    'FILE_UNUSABLE: cannot open BOX/empty: it is a file, not the folder of an unpacked bundle hint: specify a bundle with --bundle',
  ],
  [
    'a name that is too long',
    `status --install-dir ${LONG}`,
    25,
    `FILE_UNUSABLE: cannot read BOX/${LONG}: name too long hint: the path or a name in it is too long: use a shorter one`,
  ],
  [
    'a long name for an add-on',
    `new ${LONG}`,
    64,
    `USAGE: new: "${LONG.slice(0, 120)}" is not a name for an add-on hint: use at most 100 lower-case letters, digits, ".", "_" and "-"; the first and the last is a letter or a digit`,
  ],
  [
    'a file for the folder of packages',
    'build hello --out empty',
    25,
    'FILE_UNUSABLE: cannot create the folder for packages BOX/empty: BOX/empty is not a folder hint: specify a folder, or a path at which nothing exists yet',
  ],
  [
    'a file of no add-on',
    'publish empty --to store',
    14,
    'NOT_FOUND: "empty" is a file that belongs to no add-on hint: leave it out; specify a name, name/version, name-version or a path',
  ],
  [
    'a file for a repository',
    'import kurl empty',
    25,
    'FILE_UNUSABLE: cannot read BOX/empty: it is not a folder hint: specify the folder that contains addons or packages',
  ],
  [
    'a store in S3 for a file',
    'verify s3://addons/dist',
    22,
    'UNSUPPORTED: s3://addons/dist is an address, but this command reads files only hint: curlew versions --from s3://addons/dist lists what a store has; with --key FILE it verifies the signature of the release',
  ],
  [
    'a bundle on a web server for a file',
    'inspect https://u:secret@example.invalid/edge.tar.gz',
    22,
    'UNSUPPORTED: https://example.invalid/edge.tar.gz is an address, but this command reads files only hint: download the file first',
  ],
  ['nothing to pull', 'pull none', 14, 'NOT_FOUND: BOX: there is no none hint: check the path or address'],
  ...[
    'status --install-dir none --prometheus',
    'support-bundle --install-dir none --out',
    'preflight --exclude-builtin check.yaml --save',
  ].flatMap(
    (words) =>
      [
        [
          `a missing folder for ${words}`,
          `${words} none/x`,
          25,
          'FILE_UNUSABLE: cannot write BOX/none/x: BOX/none does not exist hint: create it first (mkdir -p BOX/none), or specify another file',
        ],
        [
          `a folder for the file of ${words}`,
          `${words} addons`,
          25,
          'FILE_UNUSABLE: cannot write BOX/addons: it is a folder hint: specify a file in it',
        ],
      ] as const,
  ),
  [
    'no limit of what to remove',
    'prune --from store',
    64,
    'USAGE: curlew prune: --keep or --older-than is required hint: --keep 10, --older-than 30d, or both',
  ],
] as const) {
  test(`${title} is named, with what to do`, async () => {
    await using box = await tree({
      empty: '',
      short: 'x',
      'check.yaml':
        'apiVersion: troubleshoot.sh/v1beta2\nkind: HostPreflight\nmetadata: { name: a }\nspec: { collectors: [{ cpu: {} }] }\n',
      'addons/hello/1.0.0/Manifest': '',
      'addons/hello/1.0.0/install.sh': '',
    });
    const outcome = await runCommand(words.split(' '), box.path);
    assert.is(outcome.exitCode, exitCode, outcome.stderr);
    const said = outcome.stderr.slice(outcome.stderr.indexOf('error ')).replaceAll(/\s+/g, ' ').trim();
    assert.is(said, `error ${text.replaceAll('BOX', box.path)}`);
    if (words.startsWith('prune')) assert.not.match(outcome.stderr, 'warning');
  });
}

test.run();
