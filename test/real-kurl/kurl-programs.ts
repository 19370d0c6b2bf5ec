/** The programs that kURL's scripts call below `bin/`, built from its own sources. */
import { execa } from 'execa';
import { existsSync } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT, run } from '../components/support/programs.ts';

/** Where its package has another name for one than the sources. */
const NAMES: Readonly<Record<string, string>> = { docker: 'docker-config' };

/**
 * A folder of them, kept for each commit: undefined where the repository has no sources of its own. One that does not
 * build is said, and missing: what calls it fails as it would on a node without it.
 */
export async function kurlPrograms(root: string, say: (text: string) => void): Promise<string | undefined> {
  const sources = join(root, 'kurl_util/cmd');
  if (!existsSync(sources)) return undefined;
  const commit = await run('git', ['-C', root, 'rev-parse', 'HEAD']);
  const bin = join(ROOT, '.curlew/real-kurl', commit);
  await mkdir(bin, { recursive: true });
  const names = await readdir(sources);
  const wanted = [...names.map((name) => [name, `./kurl_util/cmd/${name}`] as const), ['kurl', './cmd/kurl'] as const];
  for (const [name, from] of wanted) {
    const to = join(bin, NAMES[name] ?? name);
    if (existsSync(to)) continue;
    say(`building ${name} of kURL`);
    const { exitCode, stderr } = await execa('go', ['build', '-o', to, from], {
      cwd: root,
      reject: false,
      env: { CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false' },
    });
    if (exitCode !== 0) say(`${name} of kURL does not build: ${stderr.split('\n').slice(-2).join(' ')}`);
  }
  return bin;
}
