/** `curlew join-parts`: one file out of the parts of a bundle, or only a look at them. */
import { DOWNGRADE_OPTION, NETWORK_OPTIONS, SIGNED_OPTIONS } from '../options.ts';
import { dirname, join, resolve } from 'node:path';
import { checkParts, joinedBytes, joinParts, type JoinOptions } from '../../bundle/parts/join-parts.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError, ERROR_CODES, redact } from '../../core/errors.ts';
import { isHeadPath } from '../../core/parts.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { checkedIndex } from '../../app/ports/install-source.ts';
import { isAddress } from '../../app/archives/open-anywhere.ts';
import { STANDARD_OUTPUT } from '../output.ts';
import { proveWhole, requireSignedFile } from '../../app/archives/prove-whole.ts';
import { columns } from '../render/columns.ts';
import { formatBytes } from '../render/units.ts';
import { trustOf, type Trust } from '../../app/ports/trust.ts';
import { openStandardOutput } from '../standard-output.ts';

interface CheckedPart {
  readonly name: string;
  readonly size: number;
  /** Undefined where it was not found. */
  readonly path: string | undefined;
  /** Undefined for a part that is right. */
  readonly problem: string | undefined;
}

type JoinResult =
  | {
      readonly kind: 'joined';
      readonly file: string;
      readonly size: number;
      readonly parts: number;
      /** The public key whose signature holds; undefined where none was asked for. */
      readonly signedBy: string | undefined;
    }
  | { readonly kind: 'sent' }
  | { readonly kind: 'checked'; readonly parts: readonly CheckedPart[]; readonly signedBy: string | undefined };

export const joinPartsCommand: Command<JoinResult> = {
  name: 'join-parts',
  summary: 'Join the parts of a bundle, or check them',
  operands: 'HEAD [FOLDER…]',
  options: {
    output: { type: 'string', short: 'o', value: 'FILE', help: 'the bundle to write, or - for standard output' },
    check: { type: 'boolean', help: 'say of every part whether it is right, and write nothing' },
    force: { type: 'boolean', help: 'replace the file if it is there' },
    ...SIGNED_OPTIONS,
    ...DOWNGRADE_OPTION,
    config: NETWORK_OPTIONS.config,
  },
  details: `HEAD is the file NAME.parts.json that came with the parts. They are looked for beside it and in the folders. Parts that are missing, damaged, swapped or of another bundle are named before anything is written.

The head file says which parts belong together, not who made them. With --key, the signature beside it is held against their table of contents before anything is written, and against every byte before the file has its name; without, the result says that nothing was proved.

Where somebody sits at the terminal, media may come one after the other: the next one is asked for. Copy the head file to a disk first.`,
  examples: [
    'curlew join-parts bundle.tar.gz.parts.json -o bundle.tar.gz',
    'curlew join-parts bundle.tar.gz.parts.json /media/one /media/two -o b.tar.gz',
    'curlew join-parts bundle.tar.gz.parts.json --check --key release.pub',
    'curlew join-parts bundle.tar.gz.parts.json -o - | tar -xz',
  ],
  run: async (args, context) => {
    const { report, signal } = context;
    const { head, folders, output } = wordsOf(args, context);
    const { judge, signedBy } = judgeOf(await trustOf(args.options, context), head, context);
    const place = { folders, judge, report, signal };
    if (output === undefined) {
      const found = await checkParts(head, place);
      const parts = found.map(({ part: { name, size }, path, problem }) => ({ name, size, path, problem }));
      return { kind: 'checked', parts, signedBy: signedBy() };
    }
    if (output === STANDARD_OUTPUT) {
      const write = openStandardOutput({ signal });
      for await (const chunk of joinedBytes(head, place)) await write(chunk);
      return { kind: 'sent' };
    }
    const next = askerFor(context, folders);
    const joined = await joinParts(head, output, { ...place, force: args.flag('force'), next });
    return { kind: 'joined', file: output, size: joined.size, parts: joined.parts.length, signedBy: signedBy() };
  },
  carriesBytes: (args) => args.text('output') === STANDARD_OUTPUT,
  render: (result) => {
    if (result.kind === 'sent') return '';
    const isWrong = result.kind === 'checked' && result.parts.some(({ problem }) => problem !== undefined);
    const lines =
      result.kind === 'joined'
        ? [`${result.file}: ${formatBytes(result.size)} from ${counted(result.parts, 'part')}`]
        : columns(result.parts.map(({ name, problem = 'is right' }) => [name, problem]));
    return [...lines, ...(isWrong ? [] : [proofLine(result.signedBy)])].join('\n');
  },
  exitCode: (result) => {
    if (result.kind !== 'checked') return 0;
    const wrong = result.parts.filter(({ problem }) => problem !== undefined);
    if (wrong.length === 0) return 0;
    return wrong.every(({ path }) => path === undefined) ? ERROR_CODES.NOT_FOUND : ERROR_CODES.DIGEST_MISMATCH;
  },
};

function proofLine(signedBy: string | undefined): string {
  return signedBy === undefined
    ? 'no signature was checked: the parts belong together, but who made them is not proved; --key FILE asks for that'
    : `signed with ${signedBy}`;
}

interface Judge {
  readonly judge: JoinOptions['judge'];
  /** Once all has been judged. */
  readonly signedBy: () => string | undefined;
}

/** As `curlew verify` judges the whole. */
function judgeOf(trust: Trust | undefined, path: string, context: CommandContext): Judge {
  let signedBy: string | undefined;
  if (trust === undefined) return { judge: undefined, signedBy: () => undefined };
  const judge: JoinOptions['judge'] = async (whole, { name }, what) => {
    const { signed } = await checkedIndex(whole, join(dirname(path), name), { ...context, trust });
    if (what === 'contents' || signed === undefined) return;
    // A signature of the contents alone says nothing of the bytes; they have to be what the contents say.
    if (signed.statement === undefined) await proveWhole(whole, path, context);
    else await requireSignedFile(whole, signed.statement.file, context);
    signedBy = signed.by;
  };
  return { judge, signedBy: () => signedBy };
}

function wordsOf(
  args: Arguments,
  { cwd }: CommandContext,
): { readonly head: string; readonly folders: readonly string[]; readonly output: string | undefined } {
  const usage = (what: string): CurlewError =>
    new CurlewError('USAGE', `curlew join-parts: ${what}`, { hint: 'curlew join-parts NAME.parts.json -o FILE' });
  const [word, ...more] = args.positionals;
  if (word === undefined) throw usage('name the head file');
  if (isAddress(word)) throw usage(`${redact(word)} is no file: fetch it and the parts first, with curlew pull`);
  if (!isHeadPath(word))
    throw usage(`${word} is no head file: that has the name of the bundle with .parts.json behind it`);
  const output = args.text('output');
  if ((output === undefined) !== args.flag('check')) throw usage('say with -o which file to write, or ask for --check');
  if (output === STANDARD_OUTPUT && args.flag('json'))
    throw usage('with -o -, standard output carries the bundle itself');
  const head = resolve(cwd, word);
  const folders = [dirname(head), ...more.map((folder) => resolve(cwd, folder))];
  const file = output === undefined || output === STANDARD_OUTPUT ? output : resolve(cwd, output);
  return { head, folders: [...new Set(folders)], output: file };
}

/** Undefined where nobody can be asked. */
function askerFor({ ask, signal }: CommandContext, folders: readonly string[]): JoinOptions['next'] {
  if (ask === undefined) return undefined;
  return async (missing, problem) => {
    const [first] = missing;
    const others = missing.length > 1 ? `, and ${missing.length - 1} more` : '';
    const lines = [
      ...(problem === undefined ? [] : [problem]),
      `${first?.name ?? ''} is missing${others}.`,
      `Mount the next medium so that its parts lie in ${folders.join(' or ')}.`,
      'Enter goes on, anything else stops:',
    ];
    const answer = await ask({ addon: 'join-parts', kind: 'text', lines }, { signal });
    if (answer?.trim() === '') return;
    throw new CurlewError('CANCELLED', `${first?.name ?? ''} is missing${others}: nothing was joined`);
  };
}
