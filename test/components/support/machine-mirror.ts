/** Where this machine gets its packages from, for bare systems of its distribution. */
import { readFile } from 'node:fs/promises';
import { run } from './programs.ts';

export interface Mirror {
  readonly url: string;
  /** `debian`, `ubuntu`. */
  readonly id: string;
  readonly release: string;
  readonly key: string;
}

/** Undefined when that is no web server. */
export async function machineMirror(): Promise<Mirror | undefined> {
  const system = await readFile('/etc/os-release', 'utf8');
  const [, release = ''] = /^VERSION_CODENAME=(\S+)$/m.exec(system) ?? [];
  const [, id = ''] = /^ID=(\S+)$/m.exec(system) ?? [];
  const format = '$(RELEASE) $(COMPONENT) $(REPO_URI)';
  const lines = await run('apt-get', ['indextargets', '--format', format, 'Created-By: Packages']);
  const start = `${release} main http`;
  const line = lines.split('\n').find((text) => text.startsWith(start));
  return line === undefined
    ? undefined
    : {
        url: line.slice(start.length - 'http'.length),
        id,
        release,
        key: `/usr/share/keyrings/${id}-archive-keyring.gpg`,
      };
}
