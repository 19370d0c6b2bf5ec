/** `curlew pull`: a bundle or package from the network, gone on with where it stopped, proved as it arrives. */
import { SIGNED_OPTIONS, STORE_OPTIONS, WEB_OPTIONS } from '../options.ts';
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { writeStateFile } from '../../platform/files/state-file.ts';
import { createPace } from '../../transfer/pace.ts';
import type { Pulled, PullOptions } from '../../transfer/from-place.ts';
import { pull } from '../../transfer/pull.ts';
import { SIGNATURE_LIMIT } from '../../formats/signing/signature.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { formatBytes } from '../render/units.ts';
import { signaturePath, trustOf } from '../../app/ports/trust.ts';
import { size as parseSize } from '../values.ts';
import { lazyHttp, objectOpener } from '../../app/ports/store-source.ts';

interface Result extends Pulled {
  /** The public key whose signature holds, where signatures were asked for. */
  readonly signedBy: string | undefined;
}

const CONNECTIONS = 4;
const MOST_CONNECTIONS = 16;

function connectionsOf(args: Arguments): number {
  const text = args.text('connections');
  if (text === undefined) return CONNECTIONS;
  const number = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number <= MOST_CONNECTIONS) return number;
  throw new CurlewError('USAGE', `--connections ${text}: not a number from 1 to ${MOST_CONNECTIONS}`);
}

function sha256Of(args: Arguments): Digest | undefined {
  const text = args.text('sha256');
  if (text === undefined) return undefined;
  const digest = `sha256:${text.toLowerCase().replace(/^sha256:/, '')}`;
  if (isDigest(digest)) return digest;
  throw new CurlewError('USAGE', '--sha256: not 64 hexadecimal digits');
}

/** The file named, or one of the address' name in the folder named or the current one. */
async function targetOf(args: Arguments, address: string, cwd: string): Promise<string> {
  const output = args.text('output');
  if (output === '-') throw new CurlewError('USAGE', 'curlew pull: it writes to a file, so that it can go on with it');
  const path = resolve(cwd, output ?? '.');
  const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() === true;
  if (!isFolder && output?.endsWith('/') !== true) return path;
  return resolve(path, nameIn(address));
}

/** The last part of an address' path. */
function nameIn(address: string): string {
  const [, , url] = /^([a-z][a-z0-9+.-]*):\/\/[^/?#]*(\/[^?#]*)?/i.exec(address) ?? [
    undefined,
    undefined,
    `/${address}`,
  ];
  const path = url ?? '/';
  let name = path.slice(path.lastIndexOf('/') + 1);
  try {
    name = decodeURIComponent(name);
  } catch {
    // Taken as it is.
  }
  if (!['', '.', '..'].includes(name) && !/[/\0]/.test(name)) return name;
  throw new CurlewError('USAGE', `curlew pull: ${address} names no file`, {
    hint: 'name the file to write with -o FILE',
  });
}

export const pullCommand: Command<Result> = {
  name: 'pull',
  summary: 'Fetch a bundle or package, going on where it stopped',
  operands: 'ADDRESS…',
  options: {
    output: {
      type: 'string',
      short: 'o',
      value: 'PATH',
      help: 'the file to write, or a folder (default: named as in the address)',
    },
    connections: { type: 'string', value: 'N', help: `requests at once (default: ${CONNECTIONS})` },
    'limit-rate': { type: 'string', value: 'RATE', help: 'bytes a second at most, as 500K or 10M' },
    sha256: { type: 'string', value: 'HEX', help: 'of the whole file; then it may be any file' },
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
  run: async (args, context) => {
    const { cwd, report, signal } = context;
    const [first] = args.positionals;
    if (first === undefined) {
      throw new CurlewError('USAGE', 'curlew pull: no address named', { hint: 'curlew pull URL -o FILE' });
    }
    const sha256 = sha256Of(args);
    const rate = args.text('limit-rate');
    const pace = rate === undefined ? undefined : createPace(parseSize(rate, '--limit-rate'), () => performance.now());
    const connections = connectionsOf(args);
    const file = await targetOf(args, first, cwd);
    const web = lazyHttp(args.options, context);
    try {
      const objectAt = objectOpener(args.options, context, web);
      const places = [];
      for (const address of args.positionals) places.push(await objectAt(address));
      const trust = await trustFor(args, context);
      const pulled = await pull(places, file, {
        sha256,
        check: trust?.check,
        force: args.flag('force'),
        connections,
        pace,
        report,
        signal,
      });
      await trust?.keep(file);
      return { ...pulled, signedBy: trust?.signedBy() };
    } finally {
      await web.close();
    }
  },
  render: ({ file, size, contents, fetched, signedBy }) => {
    const news = fetched === 0 ? 'there already' : `${formatBytes(fetched)} fetched`;
    const digest = contents === undefined ? '' : `\ncontents ${contents}`;
    const signature = signedBy === undefined ? '' : `\nsigned with ${signedBy}`;
    return `${file}: ok, ${formatBytes(size)}, ${news}${digest}${signature}`;
  },
};

interface PullTrust {
  readonly check: NonNullable<PullOptions['check']>;
  /** Puts the signature that was found at the place beside the file. */
  readonly keep: (file: string) => Promise<void>;
  readonly signedBy: () => string | undefined;
}

/** Undefined when nobody asks for signatures. */
async function trustFor(args: Arguments, context: CommandContext): Promise<PullTrust | undefined> {
  const trust = await trustOf(args.options, context);
  if (trust === undefined) return undefined;
  let signedBy: string | undefined;
  let signature: string | undefined;
  return {
    signedBy: () => signedBy,
    check: async (toc, { name, place: { store, key } }) => {
      const signed = await trust.check(name, toc, name, async () => {
        const found = await store.read(signaturePath(key), { limit: SIGNATURE_LIMIT, signal: context.signal });
        signature = found === undefined ? undefined : Buffer.from(found.data).toString();
        return signature;
      });
      signedBy = signed.by;
    },
    keep: async (file) => {
      if (signature !== undefined) await writeStateFile(signaturePath(file), signature, 0o644);
    },
  };
}
