/** What an older curlew made, as test/fixtures/compat keeps it: put where a test can use it. */
import { execa } from 'execa';
import { cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { bootId } from '../../src/platform/process/process-tree.ts';
import { formatEntry, type JournalEntry } from '../../src/runtime/journal/journal.ts';
import * as assert from './assert.ts';
import type { Outcome } from './curlew.ts';
import { makeImage, makeLayer, type Image } from './images.ts';
import { startRegistry, type RegistryServer } from './registry-server.ts';
import { runTraced } from './run-command.ts';
import { tree, type Tree } from './tree.ts';

const KEPT = join(import.meta.dirname, '../fixtures/compat');

/** It did not note which files it placed, and its signatures cover no name, version or time. */
export const FIRST = '0.1.0-2026-11-22';

/** Folders of {@link KEPT}: the version that made each, and the date of its commit. */
const MADE = [FIRST, '0.1.0-2026-11-23'] as const;

/** A folder with the plain files of a version, and with what these archives hold. */
export type Box = (...archives: readonly string[]) => Promise<Tree>;

/** Adds a test for each of the older versions, with the {@link boxOf} of its folder, and its name. */
export function eachOlder(add: (name: string, run: () => Promise<void>) => void) {
  return (name: string, run: (box: Box, made: (typeof MADE)[number]) => Promise<void>): void => {
    for (const made of MADE) {
      add(`${made}: ${name}`, async () => run(async (...archives) => boxOf(made, archives), made));
    }
  };
}

/** Stands in kept files for the folder in which the older curlew ran. */
export const BOX_MARK = '/@box@';

/** Stands in kept files for the id of the cluster; a test writes that of its own there. */
export const CLUSTER_MARK = '@cluster@';

/** The install folder, below the root of a trial. */
export const NODE = 'var/lib/curlew';

/** The images of the add-ons, under the names that their Manifests say at `images.example`. */
export async function registryOfImages(): Promise<RegistryServer> {
  const image = (text: string): Image => makeImage([makeLayer({ 'etc/web': text })], 'oci', text);
  return startRegistry({ 'web:1': image('one'), 'web:2': image('two') });
}

/** A spec with both add-ons. */
export function specOf(web: string, greeting: string): string {
  return `apiVersion: cluster.kurl.sh/v1beta1
kind: Installer
metadata:
  name: compat
spec:
  tools:
    version: 1.0.0
    greeting: ${greeting}
  web:
    version: ${web}
    greeting: ${greeting}
`;
}

/** A folder with the plain files, and what these archives hold, as if all of it had been made in this folder, on this machine. */
async function boxOf(made: string, archives: readonly string[]): Promise<Tree> {
  const box = await tree();
  await cp(join(KEPT, made), box.path, { recursive: true, filter: (path) => !path.endsWith('.tar.gz') });
  for (const one of archives) await execa('tar', ['-xzf', join(KEPT, made, `${one}.tar.gz`), '-C', box.path]);
  for (const entry of await readdir(box.path, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) await settle(box, join(entry.parentPath, entry.name));
  }
  return box;
}

/** Lets a file name this box in the place of the mark, and a journal the present start of this machine. */
async function settle(box: Tree, path: string): Promise<void> {
  const bytes = await readFile(path);
  const isJournal = basename(path) === 'journal.jsonl';
  if (!isJournal && !bytes.includes(BOX_MARK)) return;
  const text = bytes.toString().replaceAll(BOX_MARK, box.path);
  await writeFile(path, isJournal ? begunIn(text, await bootId()) : text);
}

/** The text of a journal, as if its run had begun in this start of the machine. */
export function begunIn(journal: string, boot: string): string {
  const lines = journal.split('\n').filter((line) => line !== '');
  const entries = lines.map((line) => (JSON.parse(line) as { readonly entry: JournalEntry }).entry);
  return entries.map((entry) => formatEntry(entry.type === 'planned' ? { ...entry, boot } : entry)).join('');
}

/** A command, which must succeed. */
export async function done(box: Tree, line: string): Promise<Outcome> {
  const outcome = await runTraced(line.split(' '), box);
  assert.is(outcome.exitCode, 0, `${line}\n${outcome.stdout}\n${outcome.stderr}`);
  return outcome;
}

/** A command, which must end with this status and say this. */
export async function refused(box: Tree, status: number, message: RegExp | string, line: string): Promise<void> {
  const { exitCode, stdout, stderr } = await runTraced(line.split(' '), box);
  assert.is(exitCode, status, `${line}\n${stdout}\n${stderr}`);
  assert.match(stderr.replaceAll(/\s+/g, ' '), message);
}

/** What hooks of an install write down that starts from nothing. */
export function whole(web: string, greeting: string): readonly string[] {
  return [
    'tools pre_init 1',
    'web pre_init 1',
    `tools install 1.0.0 ${greeting} found 1`,
    `web install ${web} ${greeting} found 1`,
    'tools post_init found 1',
    'web post_init found 1',
  ];
}
