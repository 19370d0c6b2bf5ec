/** Checks the output of a script: the listing of packages, and the files themselves. */
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { parseDigest } from '../../core/digest.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError, errnoOf, fileError, redact } from '../../core/errors.ts';
import { fileNameProblem, safePath } from '../../core/layout.ts';
import { compareText } from '../../core/ref.ts';
import { hashFile } from '../../platform/files/hash-file.ts';
import type { LockedFile } from '../../manifest/lock.ts';
import type { Collected } from './collector.ts';

const LISTING_LIMIT = 16 << 20;
/** Limit of files in an operating system's folder. */
const COUNT_LIMIT = 20_000;
const HASHED_AT_ONCE = 4;

const FILE = /^[A-Za-z0-9][A-Za-z0-9._+~^-]*\.(?:deb|rpm)$/;
const NAME = /^[A-Za-z0-9_][A-Za-z0-9._+-]*$/;
const VERSION = /^[A-Za-z0-9._+~^:-]+$/;
const ARCH = /^[a-z0-9_-]+$/;
/** Wider than a name: rpm requirements include paths, libraries and expressions. */
const REQUIREMENT = /^[^\u0000-\u001f\u007f]{1,1000}$/;

/** A small file of a script's results; undefined if it does not exist. Throws for a file over the limit. */
export async function readResult(path: string, doing: string): Promise<string | undefined> {
  try {
    await using handle = await open(path);
    const stat = await handle.stat();
    if (!stat.isFile() || stat.size > LISTING_LIMIT) {
      throw new CurlewError(
        'PACKAGE_INVALID',
        `cannot ${doing}: the result ${path} is not a file of up to ${LISTING_LIMIT} bytes`,
      );
    }
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(stat.size), 0, stat.size, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw fileError(doing, error);
  }
}

function linesIn(text: string): readonly string[] {
  return text.split('\n').filter((line) => line !== '');
}

type Listed = Omit<LockedFile, 'size'>;

function parseRow(line: string, doing: string): Listed {
  const [file = '', name = '', version = '', arch = '', sum = '', repository = '', ...rest] = line.split('\t');
  const sound =
    rest.length === 0 &&
    [FILE.test(file), NAME.test(name), VERSION.test(version), ARCH.test(arch)].every(Boolean) &&
    fileNameProblem(file) === undefined &&
    REQUIREMENT.test(repository);
  if (!sound) throw invalid(doing, `a line of the listing is not valid: ${JSON.stringify(line.slice(0, 200))}`);
  const digest = parseDigest(`sha256:${sum}`, doing);
  return { file, name, version, arch, digest, repository: redact(repository) };
}

function invalid(doing: string, text: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `cannot ${doing}: ${text}`);
}

/** Relative paths of the files in a folder; throws for anything that is neither file nor folder. */
async function filesBelow(folder: string, doing: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  if (entries.length > COUNT_LIMIT) throw invalid(doing, `more than ${COUNT_LIMIT} files`);
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => {
      const path = safePath(join(entry.parentPath, entry.name).slice(folder.length + 1), doing);
      if (!entry.isFile()) throw invalid(doing, `${path} is not a regular file`);
      return path;
    });
}

/**
 * The results of a successful script: `answer` is its folder of results, `folder` contains the files. Every listed package
 * must exist with the listed digest, and no other package; `doing` names the operation in messages. Anything else is
 * `PACKAGE_INVALID`.
 */
export async function readCollected(
  { answer, folder, doing }: { readonly answer: string; readonly folder: string; readonly doing: string },
  { signal }: { readonly signal: AbortSignal },
): Promise<Collected> {
  const read = async (name: string): Promise<string> => {
    const text = await readResult(join(answer, name), doing);
    if (text === undefined) throw invalid(doing, `the script wrote no ${name}`);
    return text;
  };
  const rows = linesIn(await read('packages.tsv')).map((line) => parseRow(line, doing));
  const names = new Set(rows.map(({ file }) => file));
  if (names.size !== rows.length) throw invalid(doing, 'the listing names a file twice');
  const present = new Set(await filesBelow(folder, doing));
  const stray = [...present].find((path) => FILE.test(path.slice(path.lastIndexOf('/') + 1)) && !names.has(path));
  if (stray !== undefined) throw invalid(doing, `${stray} is not in the listing`);
  const fetched = /^\d{1,15}$/.exec((await read('fetched')).trim())?.[0];
  if (fetched === undefined) throw invalid(doing, 'the number of fetched bytes is not a number');
  const packages = await mapLimited(
    rows.toSorted((a, b) => compareText(a.file, b.file)),
    async (row, context) => {
      if (!present.has(row.file)) throw invalid(doing, `${row.file} is listed but missing`);
      const { size, digest } = await hashFile(join(folder, row.file), context);
      if (digest !== row.digest)
        throw new CurlewError('DIGEST_MISMATCH', `cannot ${doing}: ${row.file} is ${digest}, not ${row.digest}`);
      return { ...row, size };
    },
    { width: HASHED_AT_ONCE, signal },
  );
  const requires = linesIn(await read('requires')).filter((line) => REQUIREMENT.test(line));
  return { packages, requires, fetched: Number(fetched) };
}
