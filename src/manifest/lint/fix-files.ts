/** Fixes findings of lint where that is safe: replaces whole files atomically, and keeps everything else byte for byte. */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import { INSTALL_SH, MANIFEST } from '../../core/layout.ts';
import { partialName } from '../../platform/files/partial.ts';
import type { AddonFolder } from '../find-addons.ts';
import { statOf } from '../text-file.ts';
import { fixManifest, fixScript, type TextChange } from './fix.ts';

export interface FixedLine extends TextChange {
  /** For messages. */
  readonly file: string;
}

const MAX_BYTES = 4 * 1024 * 1024;
const FIXERS = [
  { name: MANIFEST, fix: fixManifest },
  { name: INSTALL_SH, fix: fixScript },
] as const;

/**
 * Fixes Manifests and scripts of these folders by their findings, and returns every changed line. Skips files that are not
 * UTF-8 text. Throws `FILE_UNUSABLE` if a file cannot be written; earlier fixes stay.
 */
export function fixFiles(
  folders: readonly AddonFolder[],
  diagnostics: readonly Diagnostic[],
  { signal }: { readonly signal: AbortSignal },
): readonly FixedLine[] {
  const byFile = new Map<string, Diagnostic[]>();
  for (const one of diagnostics) {
    const same = byFile.get(one.place.file);
    if (same === undefined) byFile.set(one.place.file, [one]);
    else same.push(one);
  }
  const fixed: FixedLine[] = [];
  for (const { folder, shown } of folders) {
    for (const { name, fix } of FIXERS) {
      const file = `${shown}/${name}`;
      const diagnostics = byFile.get(file);
      if (diagnostics === undefined || statOf(folder)?.isDirectory() !== true) continue;
      signal.throwIfAborted();
      const changes = fixFile(join(folder, name), (text) => fix(text, diagnostics));
      for (const change of changes) fixed.push({ file, ...change });
    }
  }
  return fixed;
}

function fixFile(
  path: string,
  fix: (text: string) => { readonly text: string; readonly changes: readonly TextChange[] },
): readonly TextChange[] {
  const before = readBytes(path);
  const text = before === undefined ? undefined : decodeUtf8(before);
  if (before === undefined || text === undefined) return [];
  const { text: fixed, changes } = fix(text);
  if (fixed !== text) replace(path, before, Buffer.from(fixed));
  return fixed === text ? [] : changes;
}

/** Undefined for anything but a regular file, and for a file that is too large. */
function readBytes(path: string): Buffer | undefined {
  const stats = statOf(path);
  if (stats?.isFile() !== true || stats.size > MAX_BYTES) return undefined;
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      return fstatSync(file).isFile() ? readFileSync(file) : undefined;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw fileError(`read ${path}`, error);
  }
}

function decodeUtf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { ignoreBOM: true, fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Writes the new file next to the folder, which is packed, then replaces the old one, with its mode and owner. */
function replace(path: string, before: Buffer, after: Buffer): void {
  const temporary = join(dirname(dirname(path)), partialName());
  try {
    const old = statOf(path);
    const file = openSync(temporary, 'wx', 0o600);
    try {
      writeFileSync(file, after);
      if (old !== undefined) keepOwner(file, old);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (readBytes(path)?.equals(before) !== true) {
      throw new CurlewError('FILE_UNUSABLE', `cannot fix ${path}: another program has changed it`, {
        hint: 'run the same command again',
      });
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error instanceof CurlewError ? error : fileError(`write ${path}`, error);
  }
}

function keepOwner(file: number, { mode, uid, gid }: { mode: number; uid: number; gid: number }): void {
  try {
    fchownSync(file, uid, gid);
  } catch (error) {
    // Another user's file in a folder of this user: the content matters more than the owner.
    if (errnoOf(error) !== 'EPERM') throw error;
  }
  // After chown, which clears special bits.
  fchmodSync(file, mode & 0o7777);
}
