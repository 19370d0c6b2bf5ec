import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { formatEntry, parseJournal } from '../../src/runtime/journal/journal.ts';
import { isRunPlan } from '../../src/runtime/plan/run-plan.ts';
import { keptPackage } from '../../src/runtime/node/kept-package.ts';
import { readLastRun } from '../../src/runtime/prepare/last-run.ts';
import { placedDigest } from '../../src/runtime/node/placed-package.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { sampleOf } from '../support/sweep.ts';
import { CutDisk, type DiskKind } from './support/cut-disk.ts';
import { nodeState, openScene, type Scene } from './support/kill-scene.ts';
import { readStrace, straced, type FileAct } from './support/strace-log.ts';

// soak: every state that a cut could leave
const test = suite('a machine that loses its power', { timeoutMs: 1_200_000 });
const FOLDER = 'var/lib/curlew';
const KINDS: readonly DiskKind[] = ['names at once', 'names when synced'];
/** Runs that are tried to their end, after cuts spread over the whole run. */
const TRIED = 3;

type Files = ReadonlyMap<string, Buffer | undefined>;

async function filesOf(folder: string): Promise<Files> {
  const files = new Map<string, Buffer | undefined>();
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    files.set(path.slice(folder.length + 1), entry.isFile() ? await readFile(path) : undefined);
  }
  // Folders before what lies in them.
  return new Map([...files].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

async function layOut(folder: string, files: Files): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const [path, data] of files) {
    const target = join(folder, path);
    if (data === undefined) await mkdir(target, { recursive: true });
    else {
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, data, { mode: path.endsWith('run.sh') ? 0o755 : 0o644 });
    }
  }
}

function below(act: FileAct, folder: string): FileAct {
  const cut = (path: string): string => path.slice(folder.length + 1);
  return 'to' in act ? { ...act, path: cut(act.path), to: cut(act.to) } : { ...act, path: cut(act.path) };
}

/** Every state that a cut during the run could leave behind, each once. */
function statesAfterCuts(kind: DiskKind, before: Files, acts: readonly FileAct[]): readonly Files[] {
  const disk = new CutDisk(kind, before);
  const states: Files[] = [];
  let last = '';
  for (const act of acts) {
    disk.apply(act);
    const state = disk.afterCut();
    // Contents are shared between states: their identity tells whether they changed.
    const mark = [...state].map(([path, data]) => `${path} ${data === undefined ? '' : identityOf(data)}`).join('\n');
    if (mark === last) continue;
    last = mark;
    states.push(state);
  }
  return states;
}

const identities = new WeakMap<Buffer, number>();
let identity = 0;

function identityOf(data: Buffer): number {
  const known = identities.get(data) ?? (identity += 1);
  identities.set(data, known);
  return known;
}

/** What a run would believe of this folder must be so: records, journal, and packages that it would not extract again. */
async function checkFolder(folder: string): Promise<void> {
  const records = await readRecords(folder);
  await readLastRun(folder, records);
  for (const { tree, name, version, digest } of records.extracted) {
    const ref = { tree, name, version } as const;
    if ((await placedDigest(folder, ref, { signal: never })) === digest)
      await keptPackage(folder, ref, digest, { signal: never });
  }
}

/** Another start of the machine: the journals of before tell another one than now. */
async function startAnew(folder: string): Promise<void> {
  for (const run of await readdir(join(folder, 'runs')).catch(() => [])) {
    const path = join(folder, 'runs', run, 'journal.jsonl');
    const text = await readFile(path, 'utf8').catch(() => '');
    const entries = parseJournal(text, path, isRunPlan).map((entry) =>
      entry.type === 'planned' ? { ...entry, boot: 'before' } : entry,
    );
    if (entries.length > 0) await writeFile(path, entries.map(formatEntry).join(''));
  }
  await rm(join(folder, 'lock'), { force: true });
}

async function tracedRun(scene: Scene): Promise<readonly FileAct[]> {
  const ended = await scene.run('traced', {}, { under: straced(scene.at('log')) });
  assert.is(ended.exitCode, 0, ended.stderr);
  const folder = scene.at('nodes/traced', FOLDER);
  return readStrace(await readFile(scene.at('log'), 'latin1'), folder).map((act) => below(act, folder));
}

test('finds no half-extracted add-on, no damaged record or journal, and comes to the same end', async () => {
  await using scene = await openScene();
  // All hooks run again after a start of the machine, the one that is not idempotent, too.
  await writeFile(scene.at('nodes/before', FOLDER, 'state/twice'), 'yes');
  const before = await filesOf(scene.at('nodes/before', FOLDER));
  const acts = await tracedRun(scene);
  const expected = await nodeState(scene.at('nodes/traced', FOLDER));
  for (const kind of KINDS) {
    const states = statesAfterCuts(kind, before, acts);
    assert.ok(states.length > 50, `only ${states.length} states`);
    const tried = new Set(
      Array.from({ length: TRIED }, (_, index) => Math.floor(((index + 0.5) * states.length) / TRIED)),
    );
    const folder = scene.at('nodes/cut', FOLDER);
    const sample = new Set(sampleOf(states));
    for (const [index, state] of states.entries()) {
      if (!sample.has(state) && !tried.has(index)) continue;
      await layOut(folder, state);
      await checkFolder(folder);
      if (!tried.has(index)) continue;
      await startAnew(folder);
      const ended = await scene.run('cut');
      assert.is(ended.exitCode, 0, `${kind}, state ${index}: ${ended.stderr}`);
      assert.equal(await nodeState(folder), expected, `${kind}, state ${index}`);
    }
    console.log(`${kind}: ${sample.size} of ${states.length} states after ${acts.length} acts`);
  }
});

test.run();
