/** The npm package of this build, installed into an empty folder by an npm that reaches no registry. */
import { execa } from 'execa';
import { copyFile, mkdir, readdir, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  EXECUTABLE_SUMS,
  executableIndexName,
  packedExecutableName,
  releasedExecutableName,
} from '../../src/core/layout.ts';
import { ARCHES } from '../../src/core/ref.ts';
import { toolVersion } from '../../src/own/version.ts';
import * as assert from '../support/assert.ts';
import { built, CHECKOUT } from '../support/built.ts';
import { unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFolder } from '../support/web-server.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/npm-package', { timeoutMs: 300_000 });
const MIB = 1 << 20;
const CHECKS = join(CHECKOUT, '.curlew/tools/npm-checks/node_modules/.bin');
const SPEC = `apiVersion: cluster.kurl.sh/v1beta1
kind: Installer
metadata: { name: example }
spec: { hello: { version: 1.0.x } }
`;

const opened = createOpened();
let box: Tree;
let archive: string;

interface Ended {
  readonly exitCode?: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** A program in the folder with the package; it knows neither the checkout nor its npm packages. */
async function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const { PATH = '' } = process.env;
  const own = { PATH, HOME: box.path, NPM_CONFIG_CACHE: box.at('npm'), NPM_CONFIG_OFFLINE: 'true', ...env };
  return execa(command, args, { cwd: box.path, env: own, extendEnv: false, reject: false });
}

async function curlew(...args: readonly string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await run(box.at('node_modules/.bin/curlew'), args);
  assert.is(exitCode, 0, stderr);
  return stdout;
}

async function bundle(env: Readonly<Record<string, string>>): Promise<Ended> {
  const args = ['bundle', 'installer.yaml', '--from', 'store', '-o', 'bundle.tar.gz', '--force'];
  return run(box.at('node_modules/.bin/curlew'), args, env);
}

test.before(async () => {
  box = opened.keep(await tree({ 'package.json': '{ "name": "own", "type": "module", "private": true }' }));
  const { stdout } = await execa('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', box.path], {
    cwd: CHECKOUT,
    env: { NPM_CONFIG_CACHE: box.at('npm') },
  });
  archive = box.at(stdout);
  const { exitCode, stderr } = await run('npm', ['install', '--no-audit', '--no-fund', archive]);
  assert.is(exitCode, 0, stderr);
});
test.after(opened.close);

test('is at most 12 MB to send and 40 MB on disk, without any other package or a script of npm', async () => {
  assert.ok((await stat(archive)).size <= 12 * MIB);
  const { stdout } = await execa('du', ['-sk', box.at('node_modules')]);
  assert.ok(Number.parseInt(stdout, 10) <= 40 * 1024, stdout);
  const names = (await readdir(box.at('node_modules'))).filter((name) => !name.startsWith('.'));
  assert.equal(names, ['curlew']);
  const manifest = await readFile(box.at('node_modules/curlew/package.json'), 'utf8');
  assert.not.match(manifest, /"(?:pre|post)?install"|"prepare"|"dependencies"/);
});

test('has the licenses of the packages inside, and the digests and indexes of the executables instead of them', async () => {
  assert.match(await readFile(box.at('node_modules/curlew/dist/cli/licenses.txt'), 'utf8'), /^valibot \S+: MIT$/m);
  const names = await readdir(box.at('node_modules/curlew/dist/node'));
  assert.equal(names.toSorted(), [EXECUTABLE_SUMS, ...ARCHES.map(executableIndexName)].toSorted());
});

test('reads few of its files to show a help', async () => {
  for (const [most, ...words] of [
    [10, '--help'],
    [16, 'bundle', '--help'],
  ] as const) {
    const folder = box.at(`coverage-${words.join('')}`);
    const { exitCode } = await run(box.at('node_modules/.bin/curlew'), words, { NODE_V8_COVERAGE: folder });
    assert.is(exitCode, 0);
    const [name = ''] = await readdir(folder);
    const { result } = JSON.parse(await readFile(join(folder, name), 'utf8')) as {
      readonly result: readonly { readonly url: string }[];
    };
    const files = result.filter(({ url }) => url.startsWith('file:'));
    assert.ok(files.length > 0 && files.length <= most, files.map(({ url }) => url).join('\n'));
  }
});

test('creates, checks, builds and publishes an add-on, and shows the pages that messages name', async () => {
  assert.match(await curlew('--version'), toolVersion());
  assert.match(await curlew('help', 'install.md'), 'CURLEW_EXECUTABLES');
  await curlew('new', 'sample');
  const files = {
    Manifest: 'asset motd motd.txt\n',
    'motd.txt': 'Hello.\n',
    'install.sh': 'function hello() { :; }\n',
  };
  await mkdir(box.at('addons/hello/1.0.0'), { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(box.at('addons/hello/1.0.0', name), text);
  await curlew('lint', 'addons/hello');
  await curlew('build', 'hello', '--out', 'out');
  assert.equal(await readdir(box.at('out')), ['hello-1.0.0.tar.gz']);
  await curlew('publish', 'hello', '--to', 'store', '--release', 'v1');
  await writeFile(box.at('installer.yaml'), SPEC);
});

test('a bundle without a place of the executables says what to do before it reads anything', async () => {
  const program = box.at('node_modules/.bin/curlew');
  const words = ['bundle', 'nothing.yaml', '--from', 'nowhere', '-o', 'bundle.tar.gz'];
  const { exitCode, stderr } = await run(program, words);
  assert.is(exitCode, 14);
  assert.match(
    stderr,
    /no executable for amd64 nodes, which bundles for them need: this package of curlew does not contain it/,
  );
  assert.match(stderr, `download ${releasedExecutableName(toolVersion(), 'amd64')} of this release`);
  assert.match(stderr, /CURLEW_EXECUTABLES=FOLDER, or {"executables": "FOLDER"} in ~\/.config\/curlew\/config.json/);
});

test('a dry run needs no executable, says that the bundle does, and plans the bundle that the executable makes', async () => {
  const program = box.at('node_modules/.bin/curlew');
  const words = ['bundle', 'installer.yaml', '--from', 'store', '--dry-run', '--out', 'plan.json'];
  const { exitCode, stderr } = await run(program, words);
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, 'only a dry run is possible here: no executable for amd64 nodes');
  const refused = await run(program, ['bundle', '--from-plan', 'plan.json', '--from', 'store', '-o', 'planned.tar.gz']);
  assert.is(refused.exitCode, 14);
  assert.match(refused.stderr, /no executable for amd64 nodes/);
  await mkdir(box.at('place'));
  const name = releasedExecutableName(toolVersion(), 'amd64');
  await copyFile(built(packedExecutableName('amd64')), box.at('place', name));
  const env = { CURLEW_EXECUTABLES: 'place' };
  const made = await run(
    program,
    ['bundle', '--from-plan', 'plan.json', '--from', 'store', '-o', 'planned.tar.gz'],
    env,
  );
  assert.is(made.exitCode, 0, made.stderr);
  assert.is((await bundle(env)).exitCode, 0);
  assert.ok((await readFile(box.at('planned.tar.gz'))).equals(await readFile(box.at('bundle.tar.gz'))));
});

test('a bundle takes the executable from a folder, or from a web server once, and no other file', async () => {
  await mkdir(box.at('release'));
  const names = ARCHES.map(
    (arch) => [packedExecutableName(arch), releasedExecutableName(toolVersion(), arch)] as const,
  );
  for (const [from, to] of names) await copyFile(built(from), box.at('release', to));
  assert.is((await bundle({ CURLEW_EXECUTABLES: 'release' })).exitCode, 0);
  assert.match(await curlew('inspect', 'bundle.tar.gz'), 'hello');

  await using server = await serveFolder(box.at('release'));
  await writeFile(box.at('config.json'), JSON.stringify({ executables: `${server.url}/` }));
  const doctor = await curlew('doctor', 'bundle', '--config', 'config.json');
  assert.match(doctor, `with ${server.url}/${releasedExecutableName(toolVersion(), 'amd64')}`);
  assert.is(server.log.length, 0);
  for (let time = 0; time < 2; time++) assert.is((await bundle({ CURLEW_EXECUTABLES: server.url })).exitCode, 0);
  assert.is(server.log.length, 1);

  await truncate(box.at('release', releasedExecutableName(toolVersion(), 'amd64')), 100);
  for (const place of ['release', server.url]) {
    const { exitCode, stderr } = await bundle({ CURLEW_EXECUTABLES: place, XDG_CACHE_HOME: box.at('other') });
    assert.is(exitCode, 15, stderr);
    assert.match(stderr, `use the file of the release of curlew ${toolVersion()}`);
  }
});

test('doctor accepts the executable of one architecture, names what is missing, and fails without any', async () => {
  await mkdir(box.at('one'));
  await mkdir(box.at('none'));
  const name = releasedExecutableName(toolVersion(), 'arm64');
  await copyFile(built(packedExecutableName('arm64')), box.at('one', name));
  const program = box.at('node_modules/.bin/curlew');
  const one = await run(program, ['doctor', 'bundle'], { CURLEW_EXECUTABLES: 'one' });
  assert.is(one.exitCode, 0, one.stdout);
  const missing = releasedExecutableName(toolVersion(), 'amd64');
  const message = `bundles can be made for arm64 nodes with ${box.at('one', name)}, not for amd64 nodes\n`;
  assert.match(one.stdout, `[WARN] executables: ${message}`);
  assert.match(one.stdout, `cannot open ${box.at('one', missing)}: no such file`);
  const none = await run(program, ['doctor', 'bundle'], { CURLEW_EXECUTABLES: 'none' });
  assert.is(none.exitCode, 21, none.stdout);
  assert.match(none.stdout, /^\[FAIL\] executables: .*no such file$/m);
});

test('a program imports the library, and its types need those of Node alone', async () => {
  await mkdir(box.at('node_modules/@types'), { recursive: true });
  for (const name of ['@types/node', 'undici-types'])
    await symlink(join(CHECKOUT, 'node_modules', name), box.at('node_modules', name));
  const text = `import { createContext, inspect, type Built } from 'curlew';
import * as conformance from 'curlew/conformance';
const report = await inspect({ path: 'out/hello-1.0.0.tar.gz' }, createContext());
const none: readonly Built[] = [];
console.log(typeof report, typeof conformance, none.length);
`;
  await writeFile(box.at('a.ts'), text);
  const compilerOptions = { target: 'es2023', module: 'nodenext', strict: true, skipLibCheck: false, types: ['node'] };
  await writeFile(box.at('tsconfig.json'), JSON.stringify({ compilerOptions, files: ['a.ts'] }));
  const compiled = await run(process.execPath, [join(CHECKOUT, 'node_modules/typescript/bin/tsc'), '-p', '.']);
  assert.is(compiled.stdout, '');
  assert.is((await run(process.execPath, ['a.js'])).stdout, 'object object 0');
});

test('a newer package replaces an older one, each runs from its own folder, and uninstalling leaves nothing', async () => {
  await using other = await tree({ 'work/x': '', 'home/x': '' });
  await execa('tar', ['-xzf', archive, '-C', other.at('work')]);
  const manifest = other.at('work/package/package.json');
  await writeFile(manifest, (await readFile(manifest, 'utf8')).replace(/"version": "[^"]*"/, '"version": "0.0.1"'));
  await writeFile(other.at('work/package/dist/old.txt'), '');
  const npm = async (...words: readonly string[]): Promise<void> => {
    const { exitCode, stderr } = await run('npm', [...words, '--no-audit', '--no-fund', '--ignore-scripts']);
    assert.is(exitCode, 0, stderr);
  };
  const packed = await run('npm', [
    'pack',
    '--silent',
    '--ignore-scripts',
    '--pack-destination',
    other.path,
    other.at('work/package'),
  ]);
  assert.is(packed.exitCode, 0, packed.stderr);
  const older = other.at('curlew-0.0.1.tgz');
  const version = async (prefix: string): Promise<string> => (await run(other.at(prefix, 'bin/curlew'), ['-v'])).stdout;
  for (const prefix of ['one', 'two']) await npm('install', '--global', '--prefix', other.at(prefix), older);
  await npm('install', '--global', '--prefix', other.at('two'), archive);
  assert.equal([await version('one'), await version('two')], ['0.0.1', toolVersion()]);
  assert.ok(!(await readdir(other.at('two/lib/node_modules/curlew/dist'))).includes('old.txt'));
  await npm('uninstall', '--global', '--prefix', other.at('two'), 'curlew');
  assert.equal(
    (await readdir(other.at('two'), { recursive: true, withFileTypes: true })).filter((one) => !one.isDirectory()),
    [],
  );
  assert.is(await version('one'), '0.0.1');
});

unless(cannotRun(join(CHECKS, 'attw')), test)('publint and attw find no mistake', async () => {
  const publint = await run(join(CHECKS, 'publint'), [archive, '--strict']);
  assert.is(publint.exitCode, 0, publint.stdout);
  const attw = await run(join(CHECKS, 'attw'), [archive, '--profile', 'esm-only', '--no-color', '--no-emoji']);
  assert.is(attw.exitCode, 0, attw.stdout);
});

test.run();
