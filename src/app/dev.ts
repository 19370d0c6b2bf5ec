/** Builds add-ons and installs them in a trial: once, or again after each change of their files. */
import { readdir, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import type { Context } from '../core/context.ts';
import { CurlewError, ifExists, noSuchFile, requireRefusal } from '../core/errors.ts';
import { compareText, formatRef } from '../core/ref.ts';
import { useCase } from '../core/request.ts';
import { findAddons, type AddonFolder } from '../manifest/find-addons.ts';
import { pause } from '../platform/limit/repeat.ts';
import { build, type Built } from './build.ts';
import { install } from './install.ts';
import type { NodeResult } from './install-result.ts';
import { openTrialApi } from '../steps/node/trial-cluster.ts';
import { DEV, type DevRequest } from '../requests/dev.ts';
import { specOfBuilds } from '../steps/sources/builds-source.ts';
import { hostArch } from '../steps/sources/run-source.ts';

export interface Developed {
  readonly packages: readonly Built[];
  /** Absolute path of the trial. */
  readonly root: string;
  readonly result: NodeResult;
}

/**
 * Builds the newest of the matching versions of each add-on, and installs them in a sandbox, also those that are installed already.
 * Without a spec, only these add-ons are in it.
 */
export const dev = useCase(DEV, async (request, context): Promise<Developed> =>
  tryOnce(request, await newestOf(request, context), context),
);

/**
 * The same after each change below `addons/<name>` or of the spec, until the signal aborts. Reports what each attempt came to: one
 * that fails, such as for a mistake in a Manifest, is not the end.
 */
export const watchDev = useCase(DEV, async (request, context): Promise<void> => {
  const { cwd, report, signal } = context;
  const note = (level: 'info' | 'warning', text: string): void => report({ type: 'note', level, text });
  const folders = (await newestOf(request, context)).map(({ folder }) => dirname(folder));
  const watched = [...folders, ...(request.installer === undefined ? [] : [resolve(cwd, request.installer)])];
  const shown = watched.map((path) => relative(cwd, path) || '.').join(', ');
  let seen: string | undefined = await fingerprint(watched);
  while (seen !== undefined) {
    try {
      // A version may be new.
      for (const line of successLines(await tryOnce(request, await newestOf(request, context), context)))
        note('info', line);
    } catch (error) {
      // An install that was stopped says how to continue.
      if (signal.aborted) throw error;
      requireRefusal(error, signal);
      for (const line of failureLines(error)) note('warning', line);
    }
    note('info', `waiting for changes in ${shown}; Ctrl-C ends`);
    const before: string = seen;
    do seen = await settled(watched, signal);
    while (seen === before);
  }
});

async function newestOf({ addons }: DevRequest, { cwd, signal }: Context): Promise<readonly AddonFolder[]> {
  const { folders } = await findAddons(cwd, addons, { signal });
  // Versions of a name follow each other, and the newest is the last.
  return [...new Map(folders.map((one) => [`${one.root}\0${one.tree}/${one.name}`, one])).values()];
}

/** Without reading it: what a pipe has can be read once. `NOT_FOUND` if there is none, `FILE_UNUSABLE` for a folder. */
async function requireFile(path: string, name: string): Promise<void> {
  const doing = `read ${name}`;
  const stats = await ifExists(doing, stat(path));
  if (stats === undefined) throw noSuchFile(doing);
  if (stats.isDirectory())
    throw new CurlewError('FILE_UNUSABLE', `cannot ${doing}: it is a folder`, { hint: 'specify a file' });
}

async function tryOnce(
  { root, installer, set, hookTimeout, yes, network, env, kubeconfig, context: chosen, ...inputs }: DevRequest,
  folders: readonly AddonFolder[],
  context: Context,
): Promise<Developed> {
  // A build may take minutes.
  if (installer !== undefined) await requireFile(resolve(context.cwd, installer), installer);
  if (kubeconfig !== undefined) await openTrialApi(kubeconfig, { context: chosen }, context);
  const paths = folders.map(({ folder }) => folder);
  const { packages } = await build({ ...inputs, addons: paths, arch: hostArch() }, context);
  const out = dirname(packages[0]?.path ?? context.cwd);
  const trial = resolve(context.cwd, root ?? join(out, 'trial'));
  const spec = installer === undefined ? { installerText: specOfBuilds(packages) } : { installer };
  const hooks = { set, hookTimeout, yes, network, env, kubeconfig, context: chosen };
  // A package may be older than the one before, and nothing is to be rolled back.
  const again = { reapply: true, allowDowngrade: true, dropPrevious: true };
  const result = await install({ kind: 'install', from: [out], root: trial, ...spec, ...hooks, ...again }, context);
  return { packages, root: trial, result };
}

function successLines({ packages, result }: Developed): readonly string[] {
  const seconds = 'seconds' in result ? ` in ${result.seconds.toFixed(1)} s` : '';
  const messages = 'messages' in result ? result.messages : [];
  return [
    `${packages.map(formatRef).join(', ')} installed${seconds}`,
    ...messages.flatMap(({ addon, text }) => text.split('\n').map((line) => `${addon}: ${line}`)),
  ];
}

function failureLines({ message, hint, diagnostics }: CurlewError): readonly string[] {
  return [
    ...diagnostics.map(({ place, message: what, hint: how }) => {
      const more = how === undefined ? '' : ` (${how})`;
      return `${place.file}:${place.line}:${place.column}: ${what}${more}`;
    }),
    ...message.split('\n'),
    ...(hint === undefined ? [] : [`hint: ${hint}`]),
  ];
}

const LOOK_MS = 300;
/** Files that are looked at each time. */
const MAX_FILES = 20_000;

/** Waits until two looks are equal, since an editor or git writes several files; undefined if the signal aborts. */
async function settled(paths: readonly string[], signal: AbortSignal): Promise<string | undefined> {
  for (let before = ''; ;) {
    try {
      await pause(LOOK_MS, { signal });
    } catch {
      return undefined;
    }
    const now = await fingerprint(paths);
    if (now === before) return now;
    before = now;
  }
}

/**
 * Names, sizes and times of files, and of those in folders. Notices changes on every file system, unlike inotify. `UNSUPPORTED` for too
 * many files.
 */
async function fingerprint(paths: readonly string[]): Promise<string> {
  const rows: string[] = [];
  const look = async (path: string): Promise<void> => {
    const stats = await stat(path).catch(() => undefined);
    rows.push(`${path} ${stats === undefined ? 'absent' : `${stats.ino} ${stats.size} ${stats.mtimeMs}`}`);
    if (rows.length > MAX_FILES) {
      throw new CurlewError('UNSUPPORTED', `cannot watch ${paths.join(', ')}: more than ${MAX_FILES} files`);
    }
    if (stats?.isDirectory() !== true) return;
    for (const name of (await readdir(path).catch(() => [])).toSorted(compareText)) await look(join(path, name));
  };
  for (const path of paths) await look(path);
  return rows.join('\n');
}
