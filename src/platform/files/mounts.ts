/** The file systems of this machine, as the kernel lists them. */

export interface Mount {
  readonly device: string;
  readonly mountPoint: string;
  /** Type of the file system, such as `ext4` or `vfat`. */
  readonly type: string;
  /** Files on it cannot be executed. */
  readonly noexec: boolean;
}

/**
 * proc(5), mountinfo: the third field is the device, the fifth the mount point, the sixth the options. The type follows a
 * dash, since the number of fields before it varies.
 */
export function parseMounts(text: string): readonly Mount[] {
  return text.split('\n').flatMap((line) => {
    const [where = '', how = ''] = line.split(' - ', 2);
    const [, , device, , mountPoint, options = ''] = where.split(' ');
    if (device === undefined || mountPoint === undefined) return [];
    const [type = ''] = how.split(' ', 1);
    return [{ device, mountPoint: unescape(mountPoint), type, noexec: options.split(',').includes('noexec') }];
  });
}

/** Blanks, line ends and backslashes are escaped in octal. */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

/** The deepest mount that contains a path; of two on the same folder, the later one hides the other. */
export function mountOf(path: string, mounts: readonly Mount[]): Mount | undefined {
  let best: Mount | undefined;
  for (const mount of mounts) {
    const below = mount.mountPoint === '/' || path === mount.mountPoint || path.startsWith(`${mount.mountPoint}/`);
    if (below && mount.mountPoint.length >= (best?.mountPoint.length ?? 0)) best = mount;
  }
  return best;
}
