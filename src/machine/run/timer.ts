/** Timers of systemd, by which a control plane saves its etcd and renews its certificates without a person. */
import { copyFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context } from '../../core/context.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import { writeText } from '../../platform/files/write-whole.ts';
import { runProgram } from '../../platform/process/run-program.ts';
import { makeMissing } from '../../platform/files/make-folder.ts';

export const UNITS = '/etc/systemd/system';

export interface Timer {
  /** Name of the units; the removal of Kubernetes deletes them. */
  readonly name: string;
  readonly description: string;
  readonly everyMs: number;
  /** Each run begins by a random part of it later: what several control planes must not do at once. */
  readonly spreadMs?: number;
  /** A file with variables of the command, such as credentials of S3. */
  readonly variables?: string;
}

/** The units by their names. The first run after a boot comes early: the machine may have been off for long. */
export function timerUnits(
  command: readonly string[],
  { name, description, everyMs, spreadMs = 0, variables }: Timer,
): Readonly<Record<string, string>> {
  const every = Math.round(everyMs / 1000);
  return {
    [`${name}.service`]: `[Unit]
Description=${description}
[Service]
Type=oneshot
Nice=10
Environment=HOME=/root
${variables === undefined ? '' : `EnvironmentFile=-${variables}\n`}ExecStart=${command.map(quoted).join(' ')}
`,
    [`${name}.timer`]: `[Unit]
Description=${description}, by a timer
[Timer]
OnBootSec=${Math.min(every, 300)}s
OnUnitActiveSec=${every}s
RandomizedDelaySec=${Math.round(spreadMs / 1000)}s
[Install]
WantedBy=timers.target
`,
  };
}

function quoted(word: string): string {
  return `"${word.replaceAll(/["\\]/g, '\\$&').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`;
}

/** Runs the command with these arguments from now on; a timer from before is replaced. Returns the name of the unit. */
export async function startTimer(
  args: readonly string[],
  timer: Timer,
  {
    directory,
    context,
    units = UNITS,
  }: { readonly directory: string; readonly context: Context; readonly units?: string },
): Promise<string> {
  const { env, signal, user } = context;
  const unit = `${timer.name}.timer`;
  if (user !== 0)
    throw new CurlewError('UNSUPPORTED', `cannot start ${unit}: this changes the machine, which requires root`);
  const command = [...(await lastingCommand(directory, context)), ...args];
  for (const [name, text] of Object.entries(timerUnits(command, timer))) {
    await writeText(join(units, name), text, { force: true });
  }
  for (const words of [['daemon-reload'], ['enable', unit], ['restart', unit]]) {
    await runProgram('systemctl', words, { env, signal, doing: `start ${unit}` });
  }
  return unit;
}

/** The executable of a bundle is copied: the folder of the bundle may go. */
async function lastingCommand(directory: string, { program }: Context): Promise<readonly string[]> {
  const own = program?.();
  if (own === undefined) throw new CurlewError('UNSUPPORTED', 'a timer needs the command curlew');
  if (own.executable === undefined) return own.command;
  const path = join(directory, 'bin', 'curlew');
  if (own.executable === path) return [path];
  try {
    await makeMissing(join(directory, 'bin'));
    await copyFile(own.executable, `${path}.new`);
    await rename(`${path}.new`, path);
  } catch (error) {
    throw fileError(`copy curlew to ${path}`, error);
  }
  return [path];
}
