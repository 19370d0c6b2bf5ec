/** A timer of systemd, by which a control plane saves its etcd without a person. */
import { copyFile, mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Context } from '../../core/context.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import { writeText } from '../../platform/files/write-whole.ts';
import { runProgram } from '../../platform/process/run-program.ts';

const TIMER = 'curlew-etcd-snapshot';
const UNITS = '/etc/systemd/system';
/** Variables of the command, such as credentials of S3; the removal of Kubernetes deletes it. */
const VARIABLES = '/etc/kubernetes/curlew/snapshot.env';

/** The units by their names. The first run after a boot comes early: the machine may have been off for long. */
export function timerUnits(command: readonly string[], everyMs: number): Readonly<Record<string, string>> {
  const seconds = Math.round(everyMs / 1000);
  return {
    [`${TIMER}.service`]: `[Unit]
Description=Snapshot of etcd
[Service]
Type=oneshot
Nice=10
Environment=HOME=/root
EnvironmentFile=-${VARIABLES}
ExecStart=${command.map(quoted).join(' ')}
`,
    [`${TIMER}.timer`]: `[Unit]
Description=Snapshots of etcd every ${seconds} s
[Timer]
OnBootSec=5min
OnUnitActiveSec=${seconds}s
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
  everyMs: number,
  {
    directory,
    context,
    units = UNITS,
  }: { readonly directory: string; readonly context: Context; readonly units?: string },
): Promise<string> {
  const { env, signal } = context;
  const unit = `${TIMER}.timer`;
  const command = [...(await lastingCommand(directory, context)), ...args];
  for (const [name, text] of Object.entries(timerUnits(command, everyMs))) {
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
    await mkdir(join(directory, 'bin'), { recursive: true });
    await copyFile(own.executable, `${path}.new`);
    await rename(`${path}.new`, path);
  } catch (error) {
    throw fileError(`copy curlew to ${path}`, error);
  }
  return [path];
}
