/** `curlew pull`: a bundle or package from the network, gone on with where it stopped, proved as it arrives. */
import { pullFile } from '../../app/pull.ts';
import { isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { command } from '../command.ts';
import { SIGNED_OPTIONS, STORE_OPTIONS, WEB_OPTIONS } from '../options.ts';
import { STANDARD_OUTPUT } from '../output.ts';
import { formatBytes } from '../render/units.ts';
import { size } from '../values.ts';

const MOST_CONNECTIONS = 16;

function fewConnections(text: string, option: string): number {
  const number = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number <= MOST_CONNECTIONS) return number;
  throw new CurlewError('USAGE', `${option} ${text}: not a number from 1 to ${MOST_CONNECTIONS}`);
}

function sha256(text: string, option: string): Digest {
  const digest = `sha256:${text.toLowerCase().replace(/^sha256:/, '')}`;
  if (isDigest(digest)) return digest;
  throw new CurlewError('USAGE', `${option}: not 64 hexadecimal digits`);
}

function file(text: string): string {
  if (text !== STANDARD_OUTPUT) return text;
  throw new CurlewError('USAGE', 'curlew pull: it writes to a file, so that it can go on with it');
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
      help: 'the file to write, or a folder (default: named as in the address)',
    },
    connections: { type: 'string', read: fewConnections, value: 'N', help: 'requests at once (default: 4)' },
    'limit-rate': { type: 'string', read: size, value: 'RATE', help: 'bytes a second at most, as 500K or 10M' },
    sha256: { type: 'string', read: sha256, value: 'HEX', help: 'of the whole file; then it may be any file' },
    force: { type: 'boolean', help: 'replace the file if it is there' },
    ...SIGNED_OPTIONS,
    ...WEB_OPTIONS,
    ...STORE_OPTIONS,
  },
  details: `An address is a URL, s3://bucket/key, or a file; further ones are mirrors, asked in their order when one before them fails. The table of contents at the end comes first, and its signature is checked before anything else is fetched. Each entry is proved as it arrives; one that is damaged is fetched again, alone.

After a failure, Ctrl-C or a crash the same command resumes where it stopped: until the file is whole, what has arrived is in FILE.partial. A download that curl -o FILE began is resumed, too.`,
  examples: [
    'curlew pull https://dl.example/bundle.tar.gz --key release.pub',
    'curlew pull https://a.example/b.tar.gz https://b.example/b.tar.gz',
    'curlew pull s3://bucket/dist/r1/web-1.0.0.tar.gz --limit-rate 10M',
  ],
  run: async ({ operands: addresses, options }, context) => pullFile({ addresses, ...options }, context),
  render: ({ file, size, contents, fetched, signedBy }) => {
    const news = fetched === 0 ? 'there already' : `${formatBytes(fetched)} fetched`;
    const digest = contents === undefined ? '' : `\ncontents ${contents}`;
    const signature = signedBy === undefined ? '' : `\nsigned with ${signedBy}`;
    return `${file}: ok, ${formatBytes(size)}, ${news}${digest}${signature}`;
  },
});
