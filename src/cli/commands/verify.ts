/** `curlew verify`: proof that packages and bundles are whole and hold nothing but what their tables of contents say. */
import { DOWNGRADE_OPTION, FOLDER_OPTIONS, NETWORK_OPTIONS, SIGNED_OPTIONS } from '../options.ts';
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
import { isAsInstalled, verifyPlaced, type VerifiedNode } from '../../runtime/node/verify-placed.ts';
import { secondsOf } from '../../formats/signing/claim.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { checkedIndex } from '../../app/ports/install-source.ts';
import { folderOf } from '../../app/install-folder.ts';
import { openArchive } from '../../app/archives/open-archive.ts';
import { proveWhole, requireSignedFile } from '../../app/archives/prove-whole.ts';
import { trustOf, type Signed } from '../../app/ports/trust.ts';
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
  /** What it is signed as; absent for a signature over the contents alone. */
  readonly signedAs?: SignedAs | undefined;
  /** The bundle that a delta makes. */
  readonly delta?: DeltaJson | undefined;
}

interface SignedAs {
  readonly role: string;
  readonly name: string;
  readonly version: number;
  /** ISO 8601. */
  readonly signed: string;
  /** Null when it holds forever. */
  readonly expires: string | null;
}

const DETAILS = `With --key, the signature is held to what it says: its name (--signed-as), its time, the digest of the whole file, and that no newer version was seen on this node, which its install folder knows.

With --installed, the files of all packages in the install folder are read and compared with what their packages say of them, as that was proved when they were extracted. What differs is printed, a file a line: missing, type, owner, mode, size, digest. The status is 15 when something differs or cannot be judged. What hooks have added beside these files is not looked at; curlew install puts right what differs.`;

export const verify: Command<readonly Verified[] | VerifiedNode> = {
  name: 'verify',
  summary: 'Prove that packages or bundles are undamaged',
  operands: '[FILE…]',
  details: DETAILS,
  options: {
    installed: { type: 'boolean', help: 'what lies in the install folder, in place of files' },
    ...FOLDER_OPTIONS,
    ...SIGNED_OPTIONS,
    ...DOWNGRADE_OPTION,
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
    return args.flag('installed') ? verifyPlaced(folderOf(args.options, context), context) : verifyFiles(args, context);
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
  const places = args.text('root') !== undefined || args.text('install-dir') !== undefined;
  if (!installed && !signed && places) {
    throw bad('--root and --install-dir go with --installed, or with --key', 'curlew verify --installed');
  }
}

async function verifyFiles(args: Arguments, context: CommandContext): Promise<readonly Verified[]> {
  const trust = await trustOf(args.options, context, { directory: folderOf(args.options, context) });
  const verified: Verified[] = [];
  for (const path of args.positionals) {
    const file = resolve(context.cwd, path);
    if (isHeadPath(file)) await proveParts(file, context);
    await using source = await openArchive(file, context);
    const checked = trust === undefined ? undefined : await checkedIndex(source, source.whole, { ...context, trust });
    const index = await proveWhole(source, path, context);
    if (checked?.signed?.statement !== undefined)
      await requireSignedFile(source, checked.signed.statement.file, context);
    const { size, entries, tocDigest: digest } = index;
    const delta = await describeDelta(source, index, context);
    verified.push({ path, size, files: entries.length, digest, ...signedOf(checked), delta });
  }
  return verified;
}

function renderFiles(verified: readonly Verified[]): string {
  return verified
    .map(({ path, size, files, digest, signedBy, signedAs, delta }) =>
      [
        `${path}: ok, ${counted(files, 'file')}, ${formatBytes(size)}`,
        `contents ${digest}`,
        ...(signedBy === undefined ? [] : [`signed with ${signedBy}`]),
        ...(signedAs === undefined ? [] : [asLine(signedAs)]),
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

function signedOf(
  checked: { readonly signed: Signed | undefined } | undefined,
): Pick<Verified, 'signedBy' | 'signedAs'> {
  const { by, statement } = checked?.signed ?? {};
  if (statement === undefined) return { signedBy: by };
  const { role, name, version, signed, expires } = statement;
  const until = expires === undefined ? null : secondsOf(expires);
  return { signedBy: by, signedAs: { role, name, version, signed: secondsOf(signed), expires: until } };
}

function asLine({ role, name, version, signed, expires }: SignedAs): string {
  return `as the ${role} ${name}, version ${version}, at ${signed}${expires === null ? '' : `, until ${expires}`}`;
}

/** Before the whole: it is of use to know which part has to be copied again. */
async function proveParts(head: string, { report, signal }: CommandContext): Promise<void> {
  const found = await checkParts(head, { folders: [dirname(head)], report, signal });
  const problem = partsError(`verify ${head}`, found);
  if (problem !== undefined) throw problem;
}
