/** `--root`: hooks see the whole machine, but what they write lands below a folder. */
import { execa } from 'execa';
import { join } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { makeFolder } from '../files/make-folder.ts';
import type { NodePlace } from './node-place.ts';

export interface ConfineOptions {
  /** Absolute path of the folder that takes the writes. */
  readonly root: string;
  /** Absolute path of the install folder as hooks shall see it; it lies below `root` in truth. */
  readonly seen: string;
  /** Folder with confine.sh. */
  readonly scripts: string;
  /** Effective user id of this process. */
  readonly uid: number;
  readonly signal: AbortSignal;
}

const HINT = 'with --unconfined hooks run unconfined: what they do outside the install folder is done to this machine';

/** Tries the confinement once, with the very command that hooks will be run by. Impossible here: `UNSUPPORTED`. */
export async function confinedPlace({ root, seen, scripts, uid, signal }: ConfineOptions): Promise<NodePlace> {
  const directory = join(root, seen);
  if (uid !== 0) {
    throw new CurlewError('UNSUPPORTED', `confine hooks below ${root}: only root may do that`, { hint: HINT });
  }
  await makeFolder(directory);
  const wrap: NodePlace['wrap'] = (words) => [
    'unshare',
    '-m',
    '--propagation',
    'private',
    'bash',
    join(scripts, 'confine.sh'),
    root,
    directory,
    seen,
    ...words,
  ];
  const [command, ...args] = wrap(['true']);
  const { exitCode, stderr, cause } = await execa(command, args, {
    reject: false,
    stdin: 'ignore',
    cancelSignal: signal,
    maxBuffer: 1 << 16,
  });
  signal.throwIfAborted();
  if (exitCode !== 0) {
    const [reason = 'unshare cannot be run'] = stderr.trim().split('\n');
    throw new CurlewError('UNSUPPORTED', `confine hooks below ${root}: ${reason}`, { hint: HINT, cause });
  }
  return { directory, seen, wrap };
}
