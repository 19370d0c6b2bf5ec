/** Formats repositories for dnf and yum. */
import { CurlewError } from '../../core/errors.ts';
import type { Arch } from '../../core/ref.ts';
import { repositoryUrl, type Repository } from '../../core/repositories.ts';

/**
 * The text of a `.repo` file (dnf.conf(5), yum.conf(5)). Packages of a repository with a key must be signed by it; without a
 * key, only the repository's own digests are checked.
 */
export function rpmRepositoryFile(repositories: readonly Repository[], arch: Arch): string {
  return repositories
    .map((repository) => {
      const { id, form = 'baseurl', key } = repository;
      const url = repositoryUrl(repository, arch);
      checkRepository(id, [url, key ?? '']);
      return [
        `[${id}]`,
        `name=${id}`,
        `${form}=${url}`,
        'enabled=1',
        `gpgcheck=${key === undefined ? 0 : 1}`,
        ...(key === undefined ? [] : [`gpgkey=${key}`]),
      ]
        .map((line) => `${line}\n`)
        .join('');
    })
    .join('\n');
}

function checkRepository(id: string, values: readonly string[]): void {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(id) || id === 'main') {
    throw new CurlewError('USAGE', `repository ${JSON.stringify(id)}: not a valid repository id of dnf`, {
      hint: 'use letters, digits and dashes, but not main',
    });
  }
  const broken = values.find((value) => /[\u0000-\u001f\u007f]/.test(value));
  if (broken === undefined) return;
  throw new CurlewError('USAGE', `repository ${id}: a control character in ${JSON.stringify(broken)}`);
}
