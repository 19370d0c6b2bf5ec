/** kURL's programs for installer specs: they read files, and write files (kurl.md 4.4, 8.2). */
import { dirname } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { readFlags } from '../../spec/flags.ts';
import { installerYaml, mergeInstallers } from '../../spec/merge.ts';
import type { Installer } from '../../spec/installer.ts';
import { isEmptySpec, parseInstaller, parseMerged, type ParsedInstaller } from '../../spec/parse.ts';
import { SETTINGS } from '../../spec/settings.ts';
import { assignment, shellVariables } from '../../spec/variables.ts';
import { isJsonObject, type Json, type JsonObject } from '../../formats/yaml/yaml.ts';
import { readText, writeText } from './files.ts';
import { needed, readWords } from './words.ts';

interface Sound {
  readonly installer: Installer;
  readonly document: JsonObject;
}

/** A spec without mistakes. */
function sound(tool: string, file: string, { installer, document, diagnostics }: ParsedInstaller): Sound {
  if (installer !== undefined && document !== undefined) return { installer, document };
  throw new CurlewError('SPEC_INVALID', `${tool}: ${file}: not a valid installer spec`, { diagnostics });
}

async function readSound(tool: string, file: string): Promise<Sound> {
  return sound(tool, file, parseInstaller(file, await readText(file)));
}

/** For its owner only: specs may hold secrets. */
async function writeInto(path: string, text: string): Promise<void> {
  await makeFolder(dirname(path));
  await writeText(path, text, 0o600);
}

/** Variables that kURL makes of every spec; others are those that a spec has settings for. */
const KNOWN: ReadonlySet<string> = new Set(SETTINGS.flatMap(({ variable }) => variable ?? []));

/** `-i SPEC -b FILE`: all variables that a spec makes, sorted, to be sourced. */
export async function yamltobash(given: readonly string[]): Promise<string> {
  const words = readWords('yamltobash', given, { values: ['i', 'b'], switches: [] });
  const { installer } = await readSound('yamltobash', needed('yamltobash', words, 'i'));
  const made = shellVariables(installer, new Map()).filter(([name, value]) => value !== '' || KNOWN.has(name));
  const lines = made.map(([name, value]) => `${assignment(name, value)}\n`);
  await writeInto(needed('yamltobash', words, 'b'), lines.join(''));
  return '';
}

/** `-m OUT -b BASE -o OVERLAY`: the two specs as one; of one that is empty and another one, the other as it is written. */
export async function installermerge(given: readonly string[]): Promise<string> {
  const words = readWords('installermerge', given, { values: ['m', 'b', 'o'], switches: [] });
  const [base, overlay] = [needed('installermerge', words, 'b'), needed('installermerge', words, 'o')];
  const out = needed('installermerge', words, 'm');
  const specs = [
    { file: base, text: await readText(base) },
    { file: overlay, text: await readText(overlay) },
  ] as const;
  const written = specs.filter((one) => !isEmptySpec(one));
  const [only] = written;
  if (only === undefined) return '';
  const { document } = sound('installermerge', `${base} and ${overlay}`, parseMerged(...specs));
  await writeInto(out, written.length === 1 ? only.text.trim() : installerYaml(document));
  return '';
}

/** `-c SPEC -f FLAGS`: writes the flags into the spec. */
export async function bashmerge(given: readonly string[]): Promise<string> {
  const words = readWords('bashmerge', given, { values: ['c', 'f'], switches: [] });
  const file = needed('bashmerge', words, 'c');
  const flags = needed('bashmerge', words, 'f').split(/\s+/);
  const { settings } = readFlags(flags.filter((flag) => flag !== ''));
  const { document } = await readSound('bashmerge', file);
  const spec: Record<string, Record<string, Json>> = {};
  for (const { specName, field, value } of settings) {
    const added = Array.isArray(value) ? [...listOf(document, specName, field), ...(value as readonly Json[])] : value;
    spec[specName] = { ...spec[specName], [field]: added };
  }
  const overlay = { apiVersion: document['apiVersion'] ?? '', kind: document['kind'] ?? '', spec };
  const merged = mergeInstallers(document, overlay).document;
  const { metadata = {} } = document;
  await writeText(file, installerYaml({ ...merged, metadata }));
  return '';
}

/** What a list of the spec holds: flags add to it. */
function listOf({ spec }: JsonObject, specName: string, field: string): readonly Json[] {
  const settings = isJsonObject(spec) ? spec[specName] : undefined;
  const there = isJsonObject(settings) ? settings[field] : undefined;
  return Array.isArray(there) ? (there as readonly Json[]) : [];
}

/** `-i SPEC -o FILE`: the vendor's host preflights of a spec, if it has any. */
export async function vendorflights(given: readonly string[]): Promise<string> {
  const words = readWords('vendorflights', given, { values: ['i', 'o'], switches: [] });
  const file = needed('vendorflights', words, 'i');
  const { document } = await readSound('vendorflights', file);
  const { spec } = document;
  const kurl = isJsonObject(spec) ? spec['kurl'] : undefined;
  const found = isJsonObject(kurl) ? kurl['hostPreflights'] : undefined;
  if (found === undefined) return '';
  if (!isJsonObject(found) || found['apiVersion'] !== 'troubleshoot.sh/v1beta2') {
    throw new CurlewError('SPEC_INVALID', `vendorflights: ${file}: kurl.hostPreflights is no troubleshoot.sh/v1beta2`);
  }
  await writeInto(needed('vendorflights', words, 'o'), installerYaml(found));
  return '';
}
