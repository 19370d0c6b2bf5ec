/** What is said to mistakes of a first hour: what the given thing is, and what to write instead. */
import { generateKeyPairSync } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { commandOf, COMMANDS } from '../../src/cli/commands.ts';
import { helpAbout } from '../../src/cli/help.ts';
import { overview } from '../../src/cli/overview.ts';
import { calledAs } from '../../src/cli/suggested-commands.ts';
import { CurlewError } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/first-hour');

for (const [typed, ...expected] of [
  ['list', 'versions', 'status'],
  ['init', 'new'],
  ['push', 'publish'],
  ['rm', 'uninstall'],
  ['delete', 'uninstall'],
  ['ls', 'versions', 'status'],
  ['diff', 'changed', 'versions --since'],
  ['deploy', 'install'],
  ['get', 'status'],
  ['describe', 'why'],
  ['validate', 'installer validate'],
  ['drain', 'node drain'],
  ['backup', 'etcd snapshot'],
  ['etcd backup', 'etcd snapshot'],
  ['restore', 'etcd restore'],
] as const) {
  test(`${typed} of another tool is ${expected.join(' or ')} here`, async () => {
    assert.ok(!COMMANDS.has(typed) && expected.every((name) => COMMANDS.has(name.replace(/ --.*/, ''))));
    const error = await commandOf(typed).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof CurlewError);
    assert.is(error.hint, `did you mean ${expected.map((name) => `curlew ${name}`).join(' or ')}?`);
  });
}

test('a word that is nothing here is answered with the lists of commands and pages', async () => {
  const error = await helpAbout(['qqqqqq']).catch((thrown: unknown) => thrown);
  assert.ok(error instanceof CurlewError);
  assert.is(error.hint, 'curlew help commands lists the commands, curlew help pages the pages');
});

test('a page is shown by its name, its file and the path in the text of pages', async () => {
  const page = await helpAbout(['trials']);
  for (const topic of ['trials.md', 'docs/trials.md', './docs/trials.md']) assert.is(await helpAbout([topic]), page);
  assert.match(await helpAbout(['docs/channels.md']), /^# Channels/);
});

test('every page is shown by its listed name, and a code that has the same name in upper case', async () => {
  assert.match(await helpAbout(['usage']), /^# Using curlew/);
  assert.match(await helpAbout(['USAGE']), /^USAGE: exit status/);
  assert.match(await helpAbout(['no_space']), /^NO_SPACE: exit status/);
});

test('a misspelled error code is answered with the right one', async () => {
  const error = await helpAbout(['SPEC_INVALD']).catch((thrown: unknown) => thrown);
  assert.ok(error instanceof CurlewError);
  assert.is(error.hint, 'did you mean curlew help SPEC_INVALID?');
});

test('help about a command that does not exist proposes help about one that does, and names the lists', async () => {
  for (const [topic, hint] of [
    ['biuld', 'did you mean curlew help build? curlew help commands lists the commands, curlew help pages the pages'],
    ['NOPE', 'curlew help commands lists the commands, curlew help pages the pages'],
    ['workspace', 'curlew help commands lists the commands, curlew help pages the pages'],
    ['deploy', 'did you mean curlew help install?'],
    ['diff', 'did you mean curlew help changed or curlew help versions?'],
    ['fleet stats', 'did you mean curlew help fleet status?'],
  ] as const) {
    const error = await helpAbout([topic]).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof CurlewError);
    assert.is(error.hint, hint);
  }
});

for (const [title, words, message] of [
  [
    'a bundle',
    ['install', '--bundle', 'none.tar.gz', '--root', 't'],
    /none\.tar\.gz: no such file\n {2}hint: check the path$/,
  ],
  [
    'the head of a bundle in parts',
    ['inspect', 'none.parts.json'],
    /none\.parts\.json: no such file\n {2}hint: check the path$/,
  ],
  [
    'the source of an add-on',
    ['new', 'web', '--from', 'none.yaml'],
    /none\.yaml: no such file\n {2}hint: check the path$/,
  ],
  ['a spec', ['installer', 'validate', 'none.yaml'], /none\.yaml: no such file\n {2}hint: check the path$/],
  [
    'an address in the place of the file of a cluster',
    ['cluster', 'status', 'https://a.example/c.yaml'],
    /c\.yaml: it does not exist\n {2}hint: it is an address, and a file is expected: download it first$/,
  ],
  [
    'an address in the place of a list of versions',
    ['import-external', 'http://a.example/versions.json', '--to', 's'],
    /versions\.json: no such file\n {2}hint: it is an address, and a file is expected: download it first$/,
  ],
  [
    'an address in the place of a spec',
    ['bundle', 'http://a.example/x//c.yaml', '--from', '.', '-o', 'b.tar.gz'],
    /cannot read http:\/\/a\.example\/x\/c\.yaml: no such file\n {2}hint: it is an address, /,
  ],
  [
    'an address in the place of a public key',
    ['verify', 'b.tar.gz', '--key', 'https://a.example/k.pub'],
    /cannot read https:\/\/a\.example\/k\.pub: no such file\n {2}hint: it is an address, /,
  ],
] as const) {
  test(`${title} that does not exist has a hint`, async () => {
    await using box = await tree();
    const { exitCode, stderr } = await runCommand(words, box.path);
    assert.is(exitCode, 14, stderr);
    assert.match(stderr, message);
  });
}

test('a file in the place of the folder of a trial is named, by a dry run too', async () => {
  await using box = await tree({ file: 'x', 'b.tar.gz': 'x' });
  for (const dry of [[], ['--dry-run']]) {
    const { exitCode, stderr } = await runCommand(
      ['install', '--bundle', 'b.tar.gz', '--root', 'file', ...dry],
      box.path,
    );
    assert.is(exitCode, 25, stderr);
    assert.match(
      stderr.replaceAll(/\s+/g, ' '),
      `cannot use ${box.at('file')} as the folder of a trial: it is not a folder hint: specify with --root a folder`,
    );
  }
});

const HEAD = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: site}\nspec:\n';

for (const version of ['^1.0', '>=1.0', '~1.2', '1.x || 2.x']) {
  test(`a spec with the version ${version} is refused with the forms of versions`, async () => {
    await using box = await tree({ 'installer.yaml': `${HEAD}  rook: {version: "${version}"}\n` });
    const { exitCode, stdout, stderr } = await runCommand(['installer', 'validate', 'installer.yaml'], box.path);
    assert.is(exitCode, 11, stderr);
    assert.match(`${stdout}${stderr}`, /1\.2\.x for its greatest patch, latest, or channel:NAME/);
  });
}

for (const [title, words, message] of [
  [
    'a bundle instead of a spec',
    ['bundle', 'b.tar.gz', '--from', '.', '-o', 'x'],
    /b\.tar\.gz is a package or bundle, not/,
  ],
  [
    'a bundle instead of a spec, before anything else',
    ['bundle', 'b.tar.gz'],
    /b\.tar\.gz is a package or bundle, not/,
  ],
  [
    'a spec instead of a bundle, to install',
    ['install', '--bundle', 'installer.yaml', '--root', 'root'],
    /PACKAGE_INVALID: installer\.yaml is an installer spec, not a package or bundle\n.*curlew bundle installer\.yaml/,
  ],
  [
    'a spec instead of a bundle, to verify',
    ['verify', 'installer.yaml'],
    /installer\.yaml is an installer spec, not a package or bundle/,
  ],
  [
    'a store instead of a bundle',
    ['verify', 'store'],
    /FILE_UNUSABLE: store is a store, not a package or bundle\n.*curlew versions --from store .*--key FILE it verifies/,
  ],
  [
    'a folder instead of a bundle',
    ['inspect', 'folder'],
    /folder is a folder, not a package or bundle\n.*specify a file/,
  ],
  [
    'an unpacked bundle instead of its file, to inspect',
    ['inspect', 'unpacked'],
    /unpacked is the folder of an unpacked bundle, not a package or bundle\n.*specify the file .*curlew verify unpacked/,
  ],
  [
    'an unpacked bundle instead of its file, to sign',
    ['sign', 'unpacked', '--key', 'key'],
    /unpacked is the folder of an unpacked bundle, not a package or bundle\n.*specify the file .*curlew verify unpacked/,
  ],
  [
    'an unpacked bundle instead of its file, to load images',
    ['load-images', '--bundle', 'unpacked'],
    /unpacked is the folder of an unpacked bundle, .*\n.*--dir unpacked takes an unpacked bundle/,
  ],
  [
    'a folder of builds instead of a package',
    ['inspect', '.'],
    /\. is a folder, not a package or bundle\n.*specify a file in it, such as b\.tar\.gz$/,
  ],
  [
    'a folder instead of a bundle, to install',
    ['install', '--bundle', 'folder', '--root', 'root'],
    /folder is a folder, not a package or bundle\n.*specify a file, or use --dir folder for an unpacked bundle/,
  ],
  [
    'a folder instead of a bundle, to load images',
    ['load-images', '--bundle', 'folder'],
    /folder is a folder, not a package or bundle\n.*specify a file, or use --dir folder for an unpacked bundle/,
  ],
  [
    'a store instead of a bundle, to install',
    ['install', '--bundle', 'store', '--root', 'root'],
    /store is a store, not a package or bundle\n.*--from store takes the packages of a store/,
  ],
  [
    'a folder of builds instead of a bundle, to upgrade',
    ['upgrade', '--bundle', '.', '--root', 'root'],
    /\. is a folder, not a package or bundle\n.*--from \. takes the packages of a folder of builds/,
  ],
  [
    'a folder instead of a kubeconfig',
    ['channel', 'status', '--kubeconfig', 'folder'],
    /cannot read \S*folder: it is a folder\n.*a readable kubeconfig, which is a file such as ~\/\.kube\/config/,
  ],
  [
    'the name of an add-on instead of packages',
    ['install', 'web'],
    /unknown flag "web"\n.*--bundle FILE, --dir DIR, or --from STORE --installer FILE; curlew dev web tries the add-on/,
  ],
  [
    'the folder of an add-on instead of packages, and where',
    ['upgrade', './addons/web', '--root', 'root'],
    /--bundle FILE, --dir DIR, .*; curlew dev \.\/addons\/web tries the add-on in a checkout/,
  ],
  [
    'a misspelled flag',
    ['install', 'airgp'],
    /unknown flag "airgp", did you mean airgap\?\n {2}hint: flags are those of kURL, such as/,
  ],
  [
    'an archive of something else',
    ['install', '--bundle', 'other.tar.gz', '--root', 'root'],
    /other\.tar\.gz: not a package or bundle of curlew, or its end is missing/,
  ],
  [
    'a file instead of a store',
    ['publish', '--to', 'installer.yaml'],
    /installer\.yaml is not a folder\n[^]*hint: specify a folder, or a path at which nothing exists yet/,
  ],
  ['a file on what is no disk', ['keygen', '/proc/no-such-key'], /FILE_UNUSABLE: cannot write \/proc\/no-such-key/],
  ['a spec instead of a bundle', ['inspect', 'installer.yaml'], /installer\.yaml is an installer spec, not a package/],
  [
    'a spec instead of what a delta starts from',
    ['inventory', 'installer.yaml'],
    /PACKAGE_INVALID: installer\.yaml is an installer spec, not a package or bundle/,
  ],
  [
    'an address without its scheme',
    ['pull', 'dl.example:8080/b.tar.gz'],
    /begins with a scheme: https:\/\/dl\.example:8080/,
  ],
  [
    'a store without its scheme',
    ['versions', '--from', 'dl.example/dist'],
    /begins with a scheme: https:\/\/dl\.example$/m,
  ],
] as const) {
  test(`what was given is named: ${title}`, async () => {
    const gzip = Uint8Array.of(0x1f, 0x8b, 8, 0);
    await using box = await tree({
      'b.tar.gz': gzip,
      'other.tar.gz': gzipSync(new Uint8Array(10_240), { level: 0 }),
      'folder/file': '',
      'store/VERSION': 'v1\n',
      'unpacked/tasks.sh': '',
      key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
      'addons/web/1.0.0/Manifest': '',
      'addons/web/1.0.0/install.sh': 'web() { :; }\n',
      'installer.yaml': `${HEAD}  rook: {version: latest}\n`,
    });
    const { exitCode, stderr } = await runCommand(words, box.path);
    assert.ok(exitCode !== 0);
    assert.match(stderr, message);
  });
}

for (const [text, expected] of [
  ['Usage: curlew install [FLAG…]', 'Usage: ./install.sh [FLAG…]'],
  ['Examples:\n  curlew status --json', 'Examples:\n  ./tasks.sh status --json'],
  ['usage: curlew why ADDON [options]', 'usage: ./tasks.sh why ADDON [options]'],
  ['did you mean curlew status?', 'did you mean ./tasks.sh status?'],
  ['did you mean curlew versions or curlew status?', 'did you mean ./tasks.sh versions or ./tasks.sh status?'],
  ['curlew channel plan --help lists its options', './tasks.sh channel plan --help lists its options'],
  ['curlew help COMMAND describes one', './tasks.sh help COMMAND describes one'],
  ['curlew removes its package', 'curlew removes its package'],
] as const) {
  test(`a script of a bundle names itself in help and hints: ${text.split('\n').at(-1)}`, () => {
    assert.is(calledAs(text, './tasks.sh'), expected);
  });
}

test('no line of the overview names curlew to users of tasks.sh', () => {
  assert.not.match(calledAs(overview(), './tasks.sh'), /curlew/);
});

test.run();
