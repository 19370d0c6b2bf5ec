/** The scripts that resolve and fetch packages, and the variables that both backends pass to them. */
import { canonicalJson, digestOf, type Digest } from '../../core/digest.ts';
import { redact } from '../../core/errors.ts';
import { osRow, type OsId } from '../../core/os.ts';
import { ARCHES, type Arch } from '../../core/ref.ts';
import { repositoryUrl, type Repository } from '../../core/repositories.ts';
import { aptSources } from './apt-sources.ts';
import type { CollectRequest, Collector } from './collector.ts';
import { rpmRepositoryFile } from './rpm-repositories.ts';

/** Subfolder of the scripts; a backend that copies them must copy the whole folder. */
export const SCRIPT_FOLDER = 'host-packages';

/** Name of the script in {@link SCRIPT_FOLDER}. */
export function scriptOf(os: OsId): string {
  return osRow(os).family === 'debian' ? 'deb.sh' : 'rpm.sh';
}

/** Describes a request for messages. */
export function doingOf({ os, task, names }: CollectRequest): string {
  if (task === 'requires') return `find what the container build's packages for ${os} require`;
  return `fetch packages for ${os} (${names.slice(0, 5).join(', ')}${names.length > 5 ? ', …' : ''})`;
}

/** Variables that do not depend on paths; the backend adds the folders. */
export function scriptVariables(
  { os, arch, task }: Pick<CollectRequest, 'os' | 'arch' | 'task'>,
  mode: Collector['name'],
): Readonly<Record<string, string>> {
  const { resolve, metadata, modules } = osRow(os);
  return {
    CURLEW_OS: os,
    CURLEW_ARCH: arch,
    CURLEW_TASK: task,
    CURLEW_MODE: mode,
    CURLEW_RESOLVE: resolve,
    CURLEW_METADATA: metadata && task === 'collect' ? '1' : '0',
    CURLEW_MODULES: modules ? '1' : '0',
  };
}

/** Repositories in the form of the system's package manager. */
export function repositoriesText(os: OsId, repositories: readonly Repository[], arch: Arch): string {
  return osRow(os).family === 'debian' ? aptSources(repositories, arch) : rpmRepositoryFile(repositories, arch);
}

/**
 * The inputs of the result other than names and the state of the repositories: how the system is resolved, and its sources.
 * Excludes secrets and the locations of keys.
 */
export function sourceDigest(os: OsId, repositories: readonly Repository[] | undefined): Digest {
  const { resolve, metadata, modules } = osRow(os);
  const sources = repositories?.map((repository) => ({
    urls: ARCHES.map((arch) => redact(repositoryUrl(repository, arch))),
    suites: repository.suites ?? [],
    components: repository.components ?? [],
  }));
  return digestOf(canonicalJson({ resolve, metadata, modules, asked: sources ?? 'own' }));
}
