/** Where a template gets the next version from, as its author says it. Pure. */
import { CurlewError } from '../../core/errors.ts';

export interface Upstream {
  /** With `{version}` in it, or of a chart; empty when nothing was said. */
  readonly upstream: string;
  /** What tells the newest version; empty when nothing does. */
  readonly newest: string;
}

/** Goes between single quotes of a script: nothing that ends them, no blanks, nothing that a URL must not hold. */
const PLAIN = /^[A-Za-z0-9:/.,_~+@%=&?#{}[\]-]{1,2000}$/;
const GITHUB = /^(https:\/\/github\.com\/[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+)\/releases\/download\//;

function checked(option: string, text: string, schemes: readonly string[]): string {
  const scheme = schemes.find((one) => text.startsWith(`${one}://`));
  if (scheme === undefined || !PLAIN.test(text)) {
    throw new CurlewError('USAGE', `--${option}: not an address: ${text.slice(0, 200)}`, {
      hint: `use ${schemes.map((one) => `${one}://`).join(', ')}, and write other characters as %XX`,
    });
  }
  const [authority = ''] = text.slice(scheme.length + 3).split('/', 1);
  if (authority === '' || authority.includes('@')) {
    throw new CurlewError('USAGE', `--${option}: the address must have a host, and no user or password`);
  }
  return text;
}

/** Checks what was said; throws `USAGE`. For a release of GitHub, the newest version is known from its address. */
export function upstreamOf(upstream: string | undefined, newest: string | undefined, chart: boolean): Upstream {
  const from = upstream === undefined ? '' : checked('upstream', upstream, ['https', 'http', 'oci']);
  if (from !== '' && !chart && !from.includes('{version}')) {
    throw new CurlewError('USAGE', '--upstream: the address does not say where the version stands', {
      hint: 'for example https://github.com/example/web/releases/download/v{version}/web.yaml',
    });
  }
  const [, repository] = GITHUB.exec(from) ?? [];
  const known = repository === undefined ? '' : `${repository}/releases/latest`;
  return { upstream: from, newest: newest === undefined ? known : checked('newest', newest, ['https', 'http']) };
}
