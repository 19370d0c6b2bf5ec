/** Formats repositories for apt. */
import { CurlewError } from '../../core/errors.ts';
import type { Arch } from '../../core/ref.ts';
import { repositoryUrl, type Repository } from '../../core/repositories.ts';

/** The text of a `.sources` file: sources.list(5), deb822 style. A repository without a key is trusted. */
export function aptSources(repositories: readonly Repository[], arch: Arch): string {
  return repositories
    .map((repository) => {
      const { id, suites = ['./'], components = [], key } = repository;
      const words = [repositoryUrl(repository, arch), ...suites, ...components, key ?? ''];
      const broken = words.find((word) => /[\s\u0000-\u001f\u007f]/.test(word));
      if (broken !== undefined) {
        throw new CurlewError('USAGE', `repository ${id}: a blank or control character in ${JSON.stringify(broken)}`);
      }
      return [
        'Types: deb',
        `URIs: ${repositoryUrl(repository, arch)}`,
        `Suites: ${suites.join(' ')}`,
        ...(components.length === 0 ? [] : [`Components: ${components.join(' ')}`]),
        key === undefined ? 'Trusted: yes' : `Signed-By: ${key}`,
      ]
        .map((line) => `${line}\n`)
        .join('');
    })
    .join('\n');
}
