/** `curlew pull`: downloads a bundle or package, resumes, and verifies it. */
import { isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { command, useCase } from '../command.ts';
import { SIGNED_OPTIONS, STORE_OPTIONS, WEB_OPTIONS } from '../options.ts';
import { STANDARD_OUTPUT } from '../output.ts';
import { formatBytes } from '../render/units.ts';
import { size } from '../values.ts';

const pullFile = useCase(async () => (await import('../../app/pull.ts')).pullFile);

const MAX_CONNECTIONS = 16;

function connectionCount(text: string, option: string): number {
  const number = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number <= MAX_CONNECTIONS) return number;
  throw new CurlewError('USAGE', `${option} ${text}: not a number from 1 to ${MAX_CONNECTIONS}`);
}

function sha256(text: string, option: string): Digest {
  const digest = `sha256:${text.toLowerCase().replace(/^sha256:/, '')}`;
  if (isDigest(digest)) return digest;
  throw new CurlewError('USAGE', `${option}: not 64 hexadecimal digits`);
}

function file(text: string): string {
  if (text !== STANDARD_OUTPUT) return text;
  throw new CurlewError('USAGE', 'curlew pull: the output must be a file, so that the download can resume');
}

export const pullCommand = command({
  name: 'pull',
  operands: 'ADDRESS…',
  options: {
    output: {
      type: 'string',
      read: file,
      short: 'o',
      value: 'PATH',
      help: 'output file or folder (default: the name in the address)',
    },
    connections: { type: 'string', read: connectionCount, value: 'N', help: 'concurrent requests (default: 4)' },
    'limit-rate': { type: 'string', read: size, value: 'RATE', help: 'maximum bytes per second, such as 500K or 10M' },
    sha256: { type: 'string', read: sha256, value: 'HEX', help: 'SHA-256 of the whole file; allows any kind of file' },
    force: { type: 'boolean', help: 'replace an existing file' },
    ...SIGNED_OPTIONS,
    ...WEB_OPTIONS,
    ...STORE_OPTIONS,
  },
  details: `An address is a URL, s3://bucket/key, or a file; further addresses are mirrors, used in order after a failure. curlew fetches the table of contents at the end first, and checks its signature before it fetches the rest. It verifies each entry on arrival, and fetches only damaged entries again.

  After a failure, Ctrl-C or a crash, run the same command again to resume: an incomplete download is in FILE.partial. A download started with curl -o FILE is also resumed.`,
  examples: [
    'curlew pull https://dl.example/bundle.tar.gz --key release.pub',
    'curlew pull https://a.example/b.tar.gz https://b.example/b.tar.gz',
    'curlew pull s3://bucket/dist/r1/web-1.0.0.tar.gz --limit-rate 10M',
  ],
  run: async ({ operands: addresses, options }, context) => pullFile({ addresses, ...options }, context),
  render: ({ file, size, contents, fetched, signedBy }) => {
    const progress = fetched === 0 ? 'already present' : `${formatBytes(fetched)} fetched`;
    const digest = contents === undefined ? '' : `\ncontents ${contents}`;
    const signature = signedBy === undefined ? '' : `\nsigned with ${signedBy}`;
    return `${file}: ok, ${formatBytes(size)}, ${progress}${digest}${signature}`;
  },
});
