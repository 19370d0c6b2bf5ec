/** Repositories in the form that dnf and yum read. */
import type { Arch } from '../../core/ref.ts';
import { repositoryUrl, type Repository } from '../../core/repositories.ts';

/**
 * The text of a `.repo` file (dnf.conf(5), yum.conf(5)). Packages of a repository with a key must be signed by it;
 * without one nothing is checked but the digests that the repository itself gives.
 */
export function rpmRepositoryFile(repositories: readonly Repository[], arch: Arch): string {
  return repositories
    .map((repository) =>
      [
        `[${repository.id}]`,
        `name=${repository.id}`,
        `${repository.form ?? 'baseurl'}=${repositoryUrl(repository, arch)}`,
        'enabled=1',
        `gpgcheck=${repository.key === undefined ? 0 : 1}`,
        ...(repository.key === undefined ? [] : [`gpgkey=${repository.key}`]),
      ]
        .map((line) => `${line}\n`)
        .join(''),
    )
    .join('\n');
}
