/** `curlew verify`: proof that packages and bundles are whole and hold nothing but what their tables of contents say. */
import { dirname, resolve } from 'node:path';
import { checkParts } from '../../bundle/parts/join-parts.ts';
import { partsError } from '../../bundle/parts/parts-find.ts';
import { describeDelta } from '../../bundle/delta/delta-read.ts';
import type { DeltaJson } from '../../core/bundle.ts';
import { counted } from '../../core/counted.ts';
import type { Digest } from '../../core/digest.ts';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, ERROR_CODES } from '../../core/errors.ts';
import { isHeadPath } from '../../core/parts.ts';
import { isAsInstalled, verifyPlaced, type VerifiedNode } from '../../runtime/verify-placed.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { checkedIndex } from '../install-source.ts';
import { FOLDER_OPTIONS, folderOf } from '../node-folder.ts';
import { NETWORK_OPTIONS } from '../network.ts';
import { openArchive } from '../open-archive.ts';
import { proveWhole } from '../prove-whole.ts';
import { SIGNED_OPTIONS, trustOf } from '../signed.ts';
import { columns } from '../render/columns.ts';
import { deltaLines } from '../render/delta.ts';
import { formatBytes } from '../render/units.ts';

interface Verified {
  readonly path: string;
  readonly size: number;
  readonly files: number;
  /** Digest of the table of contents: it names every other byte. */
  readonly digest: Digest;
  /** The public key whose signature holds, where signatures were asked for. */
  readonly signedBy?: string | undefined;
  /** The bundle that a delta makes. */
  readonly delta?: DeltaJson | undefined;
}

const DETAILS = `With --installed, the files of all packages in the install folder are read and compared with what their packages say of them, as that was proved when they were extracted. What differs is printed, a file a line: missing, type, owner, mode, size, digest. The status is 15 when something differs or cannot be judged. What hooks have added beside these files is not looked at; curlew install puts right what differs.`;

export const verify: Command<readonly Verified[] | VerifiedNode> = {
  name: 'verify',
  summary: 'Prove that packages or bundles are undamaged',
  operands: '[FILE…]',
  details: DETAILS,
  options: {
    installed: { type: 'boolean', help: 'what lies in the install folder, in place of files' },
    ...FOLDER_OPTIONS,
    ...SIGNED_OPTIONS,
    config: NETWORK_OPTIONS.config,
  },
  examples: [
    'curlew verify bundle.tar.gz',
    'curlew verify packages/*.tar.gz',
    'curlew verify bundle.tar.gz --key curlew.pub',
    'curlew verify bundle.tar.gz.parts.json',
    'curlew verify --installed',
  ],
  run: async (args, context) => {
    checkWords(args);
    return args.flag('installed') ? verifyPlaced(folderOf(args, context), context) : verifyFiles(args, context);
  },
  render: (result) => ('packages' in result ? renderNode(result) : renderFiles(result)),
  exitCode: (result) => ('packages' in result && !isAsInstalled(result) ? ERROR_CODES.DIGEST_MISMATCH : 0),
};

function checkWords(args: Arguments): void {
  const installed = args.flag('installed');
  const bad = (what: string, hint: string): CurlewError => new CurlewError('USAGE', `curlew verify: ${what}`, { hint });
  if (!installed && args.positionals.length === 0) {
    throw bad('no file named', 'curlew verify FILE…, or curlew verify --installed');
  }
  if (installed && args.positionals.length > 0) {
    throw bad('--installed takes no files', 'verify files and what is installed one after the other');
  }
  const signed = args.texts('key').length > 0 || args.flag('require-signed') || args.text('signature') !== undefined;
  if (installed && signed) {
    throw bad(
      '--installed asks for no signature',
      'curlew install --key asks for it, and puts in place only what it holds for',
    );
  }
  if (!installed && (args.text('root') !== undefined || args.text('install-dir') !== undefined)) {
    throw bad('--root and --install-dir go with --installed', 'curlew verify --installed');
  }
}

async function verifyFiles(args: Arguments, context: CommandContext): Promise<readonly Verified[]> {
  const trust = await trustOf(args, context);
  const verified: Verified[] = [];
  for (const path of args.positionals) {
    const file = resolve(context.cwd, path);
    if (isHeadPath(file)) await proveParts(file, context);
    await using source = await openArchive(file, context);
    const signed = trust === undefined ? undefined : await checkedIndex(source, source.whole, { ...context, trust });
    const index = await proveWhole(source, path, context);
    const { size, entries, tocDigest: digest } = index;
    const delta = await describeDelta(source, index, context);
    verified.push({ path, size, files: entries.length, digest, signedBy: signed?.signedBy, delta });
  }
  return verified;
}

function renderFiles(verified: readonly Verified[]): string {
  return verified
    .map(({ path, size, files, digest, signedBy, delta }) =>
      [
        `${path}: ok, ${counted(files, 'file')}, ${formatBytes(size)}`,
        `contents ${digest}`,
        ...(signedBy === undefined ? [] : [`signed with ${signedBy}`]),
        ...(delta === undefined ? [] : deltaLines(delta)),
      ].join('\n'),
    )
    .join('\n');
}

function renderNode({ directory, packages, problems }: VerifiedNode): string {
  const rows = packages.flatMap(({ differences }) =>
    differences.map(({ path, what }) => [what.join(','), visible(path)]),
  );
  const unknown = packages.flatMap((one) =>
    one.problem === undefined ? [] : [`${one.name} ${one.version}: ${visible(one.problem)}`],
  );
  const files = packages.reduce((sum, one) => sum + one.files, 0);
  const bytes = packages.reduce((sum, one) => sum + one.bytes, 0);
  const all = `${counted(packages.length, 'package')}, ${counted(files, 'file')}, ${formatBytes(bytes)}`;
  const end = rows.length === 0 ? '' : `; ${counted(rows.length, 'difference')}`;
  const last = packages.length === 0 ? `Nothing is installed in ${visible(directory)}.` : `${all}${end}`;
  return [...columns(rows), ...unknown, ...problems.map((one) => `Problem: ${visible(one)}`), last].join('\n');
}

/** Before the whole: it is of use to know which part has to be copied again. */
async function proveParts(head: string, { report, signal }: CommandContext): Promise<void> {
  const found = await checkParts(head, { folders: [dirname(head)], report, signal });
  const problem = partsError(`verify ${head}`, found);
  if (problem !== undefined) throw problem;
}
