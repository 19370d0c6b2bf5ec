/** The source of the next version, as given by the template's author. Pure. */
import { CurlewError } from '../../core/errors.ts';

export interface ChartUpstream {
  /** Contains `{version}`, or is the address of a chart; empty if not given. */
  readonly upstream: string;
  /** Address that shows the newest version; empty if unknown. */
  readonly newest: string;
}

/** Placed between single quotes in a script: no quotes, no blanks, only characters of a URL. */
const PLAIN = /^[A-Za-z0-9:/.,_~+@%=&?#{}[\]-]{1,2000}$/;
const GITHUB = /^(https:\/\/github\.com\/[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+)\/releases\/download\//;

function checked(option: string, text: string, schemes: readonly string[]): string {
  const scheme = schemes.find((one) => text.startsWith(`${one}://`));
  if (scheme === undefined || !PLAIN.test(text)) {
    throw new CurlewError('USAGE', `--${option}: not a valid URL: ${text.slice(0, 200)}`, {
      hint: `use ${schemes.map((one) => `${one}://`).join(', ')}, and write other characters as %XX`,
    });
  }
  const [authority = ''] = text.slice(scheme.length + 3).split('/', 1);
  if (authority === '' || authority.includes('@')) {
    throw new CurlewError('USAGE', `--${option}: the address must have a host, and no user or password`);
  }
  return text;
}

/** Checks the arguments; throws `USAGE`. For a GitHub release, the newest version follows from its address. */
export function upstreamOf(upstream: string | undefined, newest: string | undefined, chart: boolean): ChartUpstream {
  const from = upstream === undefined ? '' : checked('upstream', upstream, ['https', 'http', 'oci']);
  if (from !== '' && !chart && !from.includes('{version}')) {
    throw new CurlewError('USAGE', '--upstream: the address does not contain {version}', {
      hint: 'for example https://github.com/example/web/releases/download/v{version}/web.yaml',
    });
  }
  const [, repository] = GITHUB.exec(from) ?? [];
  const known = repository === undefined ? '' : `${repository}/releases/latest`;
  return { upstream: from, newest: newest === undefined ? known : checked('newest', newest, ['https', 'http']) };
}
