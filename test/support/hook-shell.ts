/** A folder laid out as a run has it, to run hooks of an install.sh in. */
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ProgressEvent } from '../../src/core/events.ts';
import { adoptCarried, runHook } from '../../src/runtime/hooks/hook.ts';
import type { HookOptions, HookOutcome, HookStart, HookShell } from '../../src/runtime/hooks/hook-process.ts';
import { plainPlace } from '../../src/runtime/node/node-place.ts';
import { settingsText } from '../../src/runtime/hooks/shell-settings.ts';
import type { ShellVariable } from '../../src/spec/variables.ts';
import { never } from './context.ts';
import { tree, type Tree } from './tree.ts';

const SCRIPTS = join(import.meta.dirname, '../../scripts');

export interface Hooks extends Tree {
  readonly shell: HookShell;
  readonly events: ProgressEvent[];
  /** Runs a hook of the add-on `demo`. */
  readonly run: (
    name: string,
    options?: Partial<HookOptions> & Partial<Pick<HookStart, 'own' | 'args' | 'attempt' | 'limitMs'>>,
  ) => Promise<HookOutcome>;
  readonly notes: () => readonly string[];
}

export interface HooksOptions {
  readonly settings?: readonly ShellVariable[];
  readonly env?: Readonly<Record<string, string>>;
}

/** An install folder with these install.sh texts as add-ons `demo`, `demo2`, …. */
export async function hooks(
  scripts: readonly string[],
  { settings = [], env = {} }: HooksOptions = {},
): Promise<Hooks> {
  const box = await tree();
  const installScripts: string[] = [];
  for (const [index, text] of scripts.entries()) {
    const folder = box.at('addons', `demo${index === 0 ? '' : index + 1}`, '1.0');
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'install.sh'), text);
    installScripts.push(join(folder, 'install.sh'));
  }
  const folder = box.at('runs/r1');
  await mkdir(join(folder, 'hook'), { recursive: true });
  await writeFile(join(folder, 'settings.sh'), settingsText(settings, [['DIR', '.']]));
  const shell: HookShell = {
    place: plainPlace(box.path),
    // Processes are told by it from those of other tests on this machine.
    run: basename(box.path),
    folder,
    scripts: SCRIPTS,
    settings: join(folder, 'settings.sh'),
    carried: join(folder, 'carried.sh'),
    exchange: join(folder, 'hook'),
    installScripts,
    env: { PATH: process.env['PATH'], HOME: box.path, ...env },
  };
  const events: ProgressEvent[] = [];
  return {
    ...box,
    shell,
    events,
    run: async (name, { own, args, attempt = 1, limitMs, ...options } = {}) => {
      const outcome = await runHook(
        shell,
        { addon: 'demo', function: name, own, args, attempt, limitMs },
        { report: (event) => events.push(event), signal: never, ...options },
      );
      await adoptCarried(shell);
      return outcome;
    },
    notes: () => events.flatMap((event) => (event.type === 'note' ? [event.text] : [])),
  };
}
