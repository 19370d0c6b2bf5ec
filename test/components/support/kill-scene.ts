/** Add-ons with every hook, and a command over them that is to be killed at any moment. */
import { execa } from 'execa';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MAIN } from '../../support/compiled.ts';
import { bundleOf, type TestAddon } from '../../support/node-bundles.ts';

/** What is preloaded. */
export const POINTS: string = join(import.meta.dirname, 'kill-points.mjs');
const HOOKS = ['_pre_init', '', '_already_applied', '_post_init', '_outro', '_join', '_upgrade'] as const;
/** Hooks die, or lose their parent, at these moments of their own. */
export const HOOK_MOMENTS = ['middle', 'end'] as const;

/**
 * What hooks leave does not depend on how often they run, but for `bbb_post_init`, which fails when it finds its own work
 * and was not told so. Each adds its add-on to a variable and writes that down: what is carried shows in the tree.
 */
function script(name: string): string {
  const hooks = HOOKS.map((hook) => {
    const step = hook === '_already_applied' ? '' : hook;
    const once = `mkdir "$DIR/state/once" 2>/dev/null || [ "$CURLEW_ATTEMPT" -gt 1 ] || [ -n "$(cat "$DIR/state/twice" 2>/dev/null)" ]`;
    const called = name === 'containerd' && hook === '' ? 'containerd_install' : `${name}${hook}`;
    const check = name === 'ddd' && hook === '_already_applied' ? '[ -e "$DIR/state/check" ]' : ':';
    return `${called}() {
  mkdir -p "$DIR/state"
  ${check}
  CHAIN="\${CHAIN-} ${name}${step}"
  echo "$CHAIN" >"$DIR/state/${name}${step}.part"
  moment "${called} middle"
  ${name === 'bbb' && hook === '_post_init' ? once : ':'}
  ${name === 'ddd' && hook === '' ? 'touch "$DIR/state/check"' : ':'}
  mv "$DIR/state/${name}${step}.part" "$DIR/state/${name}${step}"
  moment "${called} end"
}`;
  });
  const uninstall = `${name}_pre_remove() {
  moment "${name}_pre_remove middle"
  rm -f "$DIR/state/${name}_outro"
}
${name}_uninstall() {
  moment "${name}_uninstall middle"
  rm -rf "$DIR/state/${name}" "$DIR/state/${name}_"*
  moment "${name}_uninstall end"
}`;
  return `${MOMENT}\n${[...hooks, uninstall].join('\n')}\n`;
}

/**
 * The disk may be filled up, but for so many bytes. An orphan goes on with its work in a while, as one does after the OOM
 * killer has taken its parent.
 */
const MOMENT = `moment() {
  [ -z "\${KILL_LOG-}" ] || echo "hook $1" >>"$KILL_LOG"
  if [ "\${FILL_AT-}" = "$1" ]; then
    head -c "$(($(stat -f -c '%a * %S' "$SCENE") - FILL_LEAVE))" /dev/zero >"$SCENE/filler"
  fi
  rm -f "$DIR/die"
  if [ "\${KILL_AT-}" = "hook $1" ]; then
    # In a sandbox nobody can be killed but by being asked to.
    if [ "$PPID" = 1 ]; then touch "$DIR/die"; sleep 1000; fi
    kill -KILL "$PPID"
    if [ "\${KILL_MODE-}" = tree ]; then kill -KILL -- "-$$"; fi
    sleep 20
  fi
}`;

/** `more` is put behind its own functions. */
export function killAddon(name: string, version: string, more = ''): TestAddon {
  return {
    name,
    version,
    files: {
      Manifest: '',
      'install.sh': `${script(name)}${more}`,
      'yaml/x.yaml': `${name}: ${version}\n`,
      'run.sh': '#!/bin/sh\n',
    },
  };
}

/** An add-on that is only installed and removed, with other files beside. */
export function smallAddon(name: string, version: string, more: Partial<TestAddon> = {}): TestAddon {
  const script = `${name}() { echo ${version} >"$DIR/${name}.txt"; }\n${name}_uninstall() { rm -f "$DIR/${name}.txt"; }\n`;
  return { name, version, ...more, files: { Manifest: '', 'install.sh': script, ...more.files } };
}

/** What is killed, and what nodes have behind them. */
export interface SceneKind {
  readonly bundles: Readonly<Record<string, readonly TestAddon[]>>;
  /** Commands that a node has seen, and their exit status. Bundles lie in the current folder. */
  readonly before: readonly (readonly [status: number, ...words: string[]])[];
  readonly words: readonly string[];
  /** Where hooks and clients find what they talk to; without it the command is a trial, and talks to nobody. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface Scene extends AsyncDisposable {
  /** Starts the command on a node of this name; a new one begins as one that an earlier bundle was installed on. */
  readonly run: (node: string, env?: Readonly<Record<string, string>>, how?: How) => Promise<Ended>;
  readonly at: (...parts: readonly string[]) => string;
  /** The install folder of a node. */
  readonly folder: (node: string) => string;
}

export interface How {
  readonly more?: readonly string[];
  /** A program, and its words, that the command is started by. */
  readonly under?: readonly string[];
}

export interface Ended {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  readonly stderr: string;
}

const NAMES = ['aaa', 'bbb', 'ccc', 'ddd'];

/** One of four add-ons is new, one is upgraded, and one is not well, though it was installed. */
const INSTALL: SceneKind = {
  bundles: {
    before: NAMES.slice(1).map((name) => killAddon(name, '1.0.0')),
    now: NAMES.map((name) => killAddon(name, name === 'bbb' ? '2.0.0' : '1.0.0')),
  },
  before: [[0, 'install', '--bundle', 'before']],
  words: ['install', '--bundle', 'now'],
};

const INSTALL_FOLDER = 'var/lib/curlew';

export async function openScene(kind: SceneKind = INSTALL): Promise<Scene> {
  const path = await mkdtemp(join(tmpdir(), 'curlew-kill-'));
  const at = (...parts: readonly string[]): string => join(path, ...parts);
  const folder = (node: string): string => at('nodes', node, INSTALL_FOLDER);
  const command = async (
    asked: readonly string[],
    node: string,
    env: Readonly<Record<string, string>> = {},
    { more = ['--unconfined'], under = [] }: How = {},
  ): Promise<Ended> => {
    const target = kind.env === undefined ? ['--root', at('nodes', node)] : ['--install-dir', folder(node)];
    const words = [...asked, ...target, '--quiet', ...more];
    const [program, ...rest] = [...under, process.execPath, '--import', POINTS, MAIN, ...words] as const;
    const { exitCode, signal, stderr } = await execa(program ?? '', rest, {
      cwd: path,
      reject: false,
      env: { ...kind.env, SCENE: at('nodes', node), ...env },
      stdin: 'ignore',
      stdout: 'ignore',
    });
    return { exitCode, signal, stderr };
  };
  for (const [name, addons] of Object.entries(kind.bundles)) await writeFile(at(name), bundleOf(addons));
  await mkdir(at('nodes/before'), { recursive: true });
  for (const [status, ...words] of kind.before) {
    const made = await command(words, 'before');
    if (made.exitCode !== status) throw new Error(`${words.join(' ')}: ${made.exitCode ?? ''} ${made.stderr}`);
  }
  // What was applied is not well: its check fails, and it is installed again.
  for (const name of ['check', 'once'])
    await rm(join(folder('before'), 'state', name), { recursive: true, force: true });
  return {
    at,
    folder,
    run: async (node, env, how) => {
      const there = await stat(at('nodes', node)).catch(() => undefined);
      if (there === undefined) await cp(at('nodes/before'), at('nodes', node), { recursive: true });
      return command(kind.words, node, env, how);
    },
    [Symbol.asyncDispose]: async () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  };
}

/** A node whose last run finished, whatever happened to the command after that, is ready for another run. */
export async function readyForAnother(folder: string): Promise<void> {
  const records = await readFile(join(folder, 'records.json'), 'utf8').catch(() => undefined);
  if (records === undefined) return;
  const { lastRun } = JSON.parse(records) as { readonly lastRun: string };
  const journal = await readFile(join(folder, 'runs', lastRun, 'journal.jsonl'), 'utf8').catch(() => '');
  if (journal.includes('"type":"ended","outcome":"finished"'))
    await rm(join(folder, 'state/once'), { recursive: true, force: true });
}

export type State = Readonly<Record<string, string>>;

export const RUN_ID = /\d{8}T\d{6}Z-[0-9a-f]{4}/g;

/** What a node looks like: files by path, without what differs between two runs that did the same. */
export async function nodeState(folder: string): Promise<State> {
  const state: Record<string, string> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])) {
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(folder.length + 1).replaceAll(RUN_ID, 'RUN');
    if (name.startsWith('runs/')) {
      // Logs and journals of as many runs as there were; nothing that only a run at work may have.
      if (!/^runs\/RUN(?:\/[\w-]+\.log|\/journal\.jsonl|\/request\.json)?$/.test(name)) state[name] = 'left over';
    } else {
      const text = entry.isFile() ? await readFile(path, 'utf8') : '';
      // Inodes and times are those of one node.
      const plain = name.startsWith('placed/') ? text.replaceAll(/,"\d+ \d+ \d+ \d+"\]/g, ']') : text;
      state[name] = plain.replaceAll(RUN_ID, 'RUN');
    }
  }
  return state;
}
