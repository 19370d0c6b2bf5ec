/** What can happen at a call of a program to the system, by the name that the shim gives the call. */
import type { Fault } from './hosts.ts';

/** A `+` is for faults that last: a disk that stays full, a file system that has become read-only. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  create: ['ENOSPC', 'ENOSPC+', 'EIO', 'EROFS+', 'EMFILE', 'EMFILE+', 'kill-after', 'stop'],
  open: ['EIO', 'EMFILE'],
  read: ['EIO', 'short'],
  write: ['ENOSPC', 'ENOSPC+', 'EIO', 'short', 'kill-middle', 'stop'],
  close: ['EIO'],
  sync: ['EIO', 'ENOSPC', 'EIO+', 'kill-before'],
  truncate: ['EIO', 'kill-before'],
  rename: ['EIO', 'ENOSPC', 'EROFS+', 'kill-before', 'kill-after', 'stop'],
  link: ['EIO', 'ENOSPC', 'EROFS+', 'kill-before', 'kill-after', 'stop'],
  symlink: ['EIO', 'ENOSPC', 'kill-after'],
  unlink: ['EIO', 'EROFS+', 'kill-before', 'stop'],
  mkdir: ['EIO', 'ENOSPC', 'ENOSPC+', 'EROFS+', 'kill-after'],
  rmdir: ['EIO', 'kill-before'],
  mode: ['EIO', 'EROFS+'],
  times: ['EIO'],
  list: ['EIO', 'EMFILE'],
  stat: ['EIO'],
  statfs: ['EIO'],
  readlink: ['EIO'],
  fork: ['EAGAIN'],
  pipe: ['EMFILE'],
};

/** All that can happen at these calls. */
export function faultsOf(labels: readonly string[]): readonly Fault[] {
  return labels.flatMap((at) => {
    const [call = ''] = at.split(' ', 1);
    const kinds = KINDS[call];
    if (kinds === undefined) throw new Error(`no faults are known for the call ${at}`);
    return kinds.map((kind) => ({ kind, at }));
  });
}

/** Words, one of which a message about this fault has. */
export const TOLD: Readonly<Record<string, RegExp>> = {
  ENOSPC: /no space/i,
  EIO: /i\/o error/i,
  EROFS: /read-only file system/i,
  EMFILE: /too many open files/i,
  EAGAIN: /resource temporarily unavailable|EAGAIN/i,
};
