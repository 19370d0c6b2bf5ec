/** What another user has put in the place of files that commands write or resume, in a folder that everybody writes to. */
import { execa } from 'execa';
import { chmod, chown, lchown, lstat, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { signaturePath, wholePath } from '../../src/steps/open/trust.ts';
import { partsPath } from '../../src/core/parts.ts';
import { pathsBeside } from '../../src/ship/transfer/partial-file.ts';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { lockedPackage } from '../support/described.ts';
import { missing, unless } from '../support/needs.ts';
import { packageOf } from '../support/packages.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFiles, type WebServer } from '../support/web-server.ts';

const test = suite('cli, planted files', { timeoutMs: 120_000 });

const FILE = 'web.tar.gz';
const { files, extra } = lockedPackage();
const BYTES = packageOf('web', '1.0.0', files, extra).bytes;
/** Looks like a copy that was cut off. */
const BEGINNING = BYTES.subarray(0, 2000);
const [OWNER, PLANTER] = [65_534, 65_533];

interface Row {
  readonly words: (server: WebServer) => readonly string[];
  /** Names that can be guessed, and whether root, whom the sticky bit does not hold, takes them away. */
  readonly names: Readonly<Record<string, 'replaced' | 'refused'>>;
}

const ROWS: readonly Row[] = [
  {
    words: () => ['sign', FILE, '--key', 'own/our.key'],
    names: { [signaturePath(FILE)]: 'replaced', [wholePath.signature(FILE)]: 'replaced' },
  },
  { words: () => ['provenance', FILE], names: { [`${FILE}.provenance.json`]: 'replaced' } },
  {
    words: () => ['split', FILE, '--size', '4K', '--to', '.'],
    names: {
      [partsPath.begun(FILE)]: 'refused',
      [partsPath.part(FILE, 1)]: 'refused',
      [partsPath.head(FILE)]: 'refused',
    },
  },
  {
    words: ({ url }) => ['pull', `${url}/${FILE}`],
    names: { [FILE]: 'refused', [pathsBeside(FILE).partial]: 'refused', [pathsBeside(FILE).note]: 'refused' },
  },
];

/** What the planter makes. */
const KINDS: Readonly<Record<string, (path: string, box: Tree) => Promise<unknown>>> = {
  'a link': async (path, box) => symlink(box.at('own/secret'), path),
  'a file': async (path) => writeFile(path, BEGINNING),
  'a pipe': async (path) => execa('mkfifo', [path]),
};

/** A folder of everybody, with the file of this user unless it is to be pulled. */
async function boxOf(owner: number, isPulled: boolean): Promise<Tree> {
  const box = await tree({ 'own/secret': BEGINNING, [FILE]: BYTES });
  await runCommand(['keygen', 'own/our'], box.path);
  for (const path of ['own', 'own/secret', 'own/our.key', FILE]) await chown(box.at(path), owner, owner);
  if (isPulled) await rm(box.at(FILE));
  await chmod(box.path, 0o1777);
  return box;
}

/** A command of this user; modules are loaded already. */
async function as(uid: number, words: readonly string[], box: Tree): Promise<Outcome> {
  process.seteuid?.(uid);
  try {
    return await runCommand(words, box.path);
  } finally {
    process.seteuid?.(0);
  }
}

/** Plants it, runs the command, and says what came of both. */
async function come(row: Row, name: string, kind: string, owner: number): Promise<readonly unknown[]> {
  await using server = await serveFiles({ [FILE]: BYTES });
  const given = row.words(server);
  await using box = await boxOf(owner, given[0] === 'pull');
  const path = box.at(name);
  await KINDS[kind]?.(path, box);
  await lchown(path, PLANTER, PLANTER);
  const before = await lstat(path);
  const { exitCode, stderr } = await as(owner, given, box);
  const after = await lstat(path).catch(() => undefined);
  assert.ok((await readFile(box.at('own/secret'))).equals(BEGINNING), 'what the link leads to is as it was');
  const isOwn = after?.isFile() === true && after.uid === owner && after.nlink === 1;
  if (exitCode === 0) return ['replaced', isOwn];
  assert.match(stderr, /^error (?:FILE_UNUSABLE|FILE_EXISTS): .*web\.tar\.gz/m);
  return ['refused', before.ino === after?.ino && before.size === after.size && before.uid === after.uid];
}

const asUsers = unless(reasonToSkip(), test);

function reasonToSkip(): string | undefined {
  return process.getuid?.() === 0 ? missing('mkfifo') : 'another user is only to be had as root';
}

asUsers('without anything planted, each of these commands does its work for each user', async () => {
  await using server = await serveFiles({ [FILE]: BYTES });
  for (const { words } of ROWS) {
    for (const owner of [0, OWNER]) {
      const given = words(server);
      await using box = await boxOf(owner, given[0] === 'pull');
      const { exitCode, stderr } = await as(owner, given, box);
      assert.is(exitCode, 0, stderr);
    }
  }
});

for (const row of ROWS) {
  for (const [name, ofRoot] of Object.entries(row.names)) {
    asUsers(`${name} of another user is neither followed, nor written to, nor waited for, nor believed`, async () => {
      for (const kind of Object.keys(KINDS)) {
        assert.equal(await come(row, name, kind, 0), [ofRoot, true], `${kind}, root`);
        assert.equal(await come(row, name, kind, OWNER), ['refused', true], `${kind}, another user`);
      }
    });
  }
}

test.run();
