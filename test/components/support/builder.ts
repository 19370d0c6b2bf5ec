/** A builder image with both families' package managers, which know the small repositories and nothing else. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { aptSources } from '../../../src/build/host-packages/apt-sources.ts';
import { rpmRepositoryFile } from '../../../src/build/host-packages/rpm-repositories.ts';
import { writeTree } from '../../support/tree.ts';
import type { WebServer } from '../../support/web-server.ts';
import { repositoryAt } from './apt-repository.ts';
import type { EngineBox } from './engine.ts';
import { cannotRun, ROOT } from './programs.ts';
import { cannotRunRpm, repositoryOf, type RpmLab } from './rpm-lab.ts';
import { TINY_PROGRAMS, type TinyRepository } from './tiny-repository.ts';

export const BUILDER = 'bare:1';
/** Made by `scripts/tools bare`. */
const BARE = join(ROOT, '.curlew/tools/bare.tar');

/** Why tests with builder containers cannot run here, or undefined. */
export function cannotRunBuilder(): string | undefined {
  return (
    cannotRun('dockerd', '/usr/bin/docker', 'busybox', ...TINY_PROGRAMS) ??
    cannotRunRpm() ??
    (existsSync(BARE) ? undefined : 'missing: scripts/tools bare')
  );
}

export interface BuilderParts {
  readonly engine: EngineBox;
  readonly tiny: TinyRepository;
  /** Serves what `tiny` has. */
  readonly pool: WebServer;
  readonly lab: RpmLab;
}

/** Makes the image {@link BUILDER} in the engine. */
export async function importBuilder({ engine, tiny, pool, lab }: BuilderParts): Promise<void> {
  const context = tiny.at('context');
  await engine.docker('import', BARE, 'bare:0');
  const apt = aptSources([repositoryAt(pool.url, '/etc/small/apt.gpg')], 'amd64');
  const rpm = rpmRepositoryFile([{ ...repositoryOf(lab), key: 'file:///etc/small/rpm.asc' }], 'amd64');
  await writeTree(context, {
    Dockerfile: 'FROM bare:0\nCOPY etc /etc/\n',
    'etc/small/apt.gpg': await readFile(tiny.key.ring),
    'etc/small/rpm.asc': await readFile(new URL(lab.key.url)),
    [`etc/apt/sources.list.d/tiny.${apt.startsWith('deb ') ? 'list' : 'sources'}`]: apt,
    'etc/yum.repos.d/small.repo': rpm,
  });
  await engine.docker('build', '--quiet', '--tag', BUILDER, context);
}
