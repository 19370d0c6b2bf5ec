/** kURL's programs for installer specs: they read files, and write files (kurl.md 4.4, 8.2). */
import { dirname } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import { makeFolder } from '../../files/make-folder.ts';
import { readFlags } from '../../installer/flags.ts';
import { installerYaml, mergeInstallers } from '../../installer/merge.ts';
import type { Installer } from '../../installer/installer.ts';
import { parseInstaller, parseMerged, type ParsedInstaller } from '../../installer/parse.ts';
import { SECTION_NAMES, SETTINGS } from '../../installer/settings.ts';
import { shellVariables } from '../../installer/variables.ts';
import { isJsonObject, readYaml, type Json, type JsonObject } from '../../installer/yaml.ts';
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

/** As kURL, it takes settings of an add-on without a version, which flags alone may have put there. */
async function readSound(tool: string, file: string): Promise<Sound> {
  const text = await readText(file);
  const { value } = readYaml(file, text);
  const spec = isJsonObject(value) ? value['spec'] : undefined;
  if (!isJsonObject(value) || !isJsonObject(spec)) return sound(tool, file, parseInstaller(file, text));
  const loose = Object.entries(spec).flatMap(([specName, settings]) => {
    const isLoose = isJsonObject(settings) && settings['version'] === undefined && !SECTION_NAMES.includes(specName);
    return isLoose ? [{ specName, settings }] : [];
  });
  if (loose.length === 0) return sound(tool, file, parseInstaller(file, text));
  const names = new Set(loose.map(({ specName }) => specName));
  const rest = Object.fromEntries(Object.entries(spec).filter(([specName]) => !names.has(specName)));
  const { installer } = sound(tool, file, parseInstaller(file, installerYaml({ ...value, spec: rest })));
  return { installer: { ...installer, sections: [...installer.sections, ...loose] }, document: value };
}

/** For its owner only: specs may hold secrets. */
async function writeInto(path: string, text: string): Promise<void> {
  await makeFolder(dirname(path));
  await writeText(path, text, 0o600);
}

const KINDS: ReadonlyMap<string, string> = new Map(
  SETTINGS.map(({ variable, kind }) => [variable ?? '', kind] as const),
);
const SAFE = /^[\w.,:/@%+=-]*$/;

/** As kURL writes it: text in quotes, numbers and lists without. Where kURL escapes quotes only, nothing is expanded. */
function assignment(name: string, value: string): string {
  const kind = KINDS.get(name) ?? (/^\d+$/.test(value) ? 'integer' : 'text');
  const bare = value === '' || (kind !== 'text' && SAFE.test(value));
  return `${name}=${bare ? value : `"${value.replaceAll(/["$`\\]/g, '\\$&')}"`}\n`;
}

/** `-i SPEC -b FILE`: all variables that a spec makes, sorted, to be sourced. */
export async function yamltobash(given: readonly string[]): Promise<string> {
  const words = readWords('yamltobash', given, { values: ['i', 'b'], switches: [] });
  const { installer } = await readSound('yamltobash', needed('yamltobash', words, 'i'));
  const lines = shellVariables(installer, new Map()).map(([name, value]) => assignment(name, value));
  await writeInto(needed('yamltobash', words, 'b'), lines.join(''));
  return '';
}

/** `-m OUT -b BASE -o OVERLAY`: the two specs as one. */
export async function installermerge(given: readonly string[]): Promise<string> {
  const words = readWords('installermerge', given, { values: ['m', 'b', 'o'], switches: [] });
  const [base, overlay] = [needed('installermerge', words, 'b'), needed('installermerge', words, 'o')];
  const parsed = parseMerged(
    { file: base, text: await readText(base) },
    { file: overlay, text: await readText(overlay) },
  );
  const { document } = sound('installermerge', `${base} and ${overlay}`, parsed);
  await writeInto(needed('installermerge', words, 'm'), installerYaml(document));
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
