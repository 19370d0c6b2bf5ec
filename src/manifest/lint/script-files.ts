/** Rules about files that install.sh names: parts of kustomizations, and templates that it renders. */
import { join } from 'node:path';
import type { ShellWord } from '../../formats/bash/shell-cursor.ts';
import { scanShell, type ShellCommand } from '../../formats/bash/shell-scan.ts';
import { literal } from '../../formats/bash/shell-text.ts';
import { fieldsOf } from '../../core/json.ts';
import { nearest } from '../../core/nearest.ts';
import { upperSnake, variableByRule } from '../../spec/variable-names.ts';
import type { AddonListing } from '../read-addon.ts';
import { quoted, type Find } from '../rules.ts';
import { readTextFile } from '../text-file.ts';
import { addFindings, placer, type Placer, type Remark } from './spot.ts';

/** Functions of the library whose second argument becomes an entry of a kustomization. */
const INSERTERS = /^insert_(?:resources|patches_strategic_merge|patches_json_6902)$/;
const RENDERERS = /^render_(?:file|yaml_file|yaml_file_2)$/;
const MAKERS = /^(?:cp|mv|ln|install|tee|touch)$/;
/** A command that the shell runs while it expands the text. */
const COMMAND = /(?<!\\)(?:\\\\)*(`)/;
/** A variable that the shell expands, without anything in its place if it is not set. */
const VARIABLE = /(?<!\\)(?:\\\\)*\$\{?([A-Z][A-Z0-9_]*)(?![A-Za-z0-9_]|:?[-+=?])/g;
const TEMPLATE_LIMIT = 1024 * 1024;

type Listing = Pick<AddonListing, 'ref' | 'folder' | 'shown' | 'files' | 'settings'>;

/** `place` is for install.sh, whose text is `text`. */
export function checkScriptFiles(listing: Listing, text: string, place: Placer, find: Find): void {
  if (!/\b(?:insert|render)_/.test(text)) return;
  const { commands } = scanShell(text);
  checkParts(listing, commands, place, find);
  const rendered = commands.flatMap(({ words: [name, file] }) =>
    file !== undefined && RENDERERS.test(literal(name) ?? '') ? [ending(file)] : [],
  );
  const templates = new Set(rendered.flatMap((name) => filesNamed(listing, name)));
  for (const path of templates) checkTemplate(listing, { path, script: text }, find);
}

/** The file below the add-on's folder, or else those of the same name below a folder that only a run knows. */
function filesNamed({ files, shown }: Listing, name: string): readonly string[] {
  const own = files.filter(
    ({ path }) => path === name || (name.endsWith(`/${path}`) && isSame(`${shown}/${path}`, name)),
  );
  const matches = own.length > 0 || name === '' ? own : files.filter(({ path }) => isSame(path, name));
  return matches.map(({ path }) => path);
}

function checkParts({ files }: Listing, commands: readonly ShellCommand[], place: Placer, find: Find): void {
  const made = commands.flatMap(({ words, writes }) => {
    const target = MAKERS.test(literal(words[0]) ?? '') ? words.at(-1) : undefined;
    return [...writes, ...(target === undefined ? [] : [target])].map(ending);
  });
  const known = [...files.map(({ path }) => path), ...made];
  for (const { words } of commands) {
    const [command, name] = [literal(words[0]) ?? '', literal(words[2])];
    if (!INSERTERS.test(command) || name === undefined || !/^[^:]+\.(?:ya?ml|json)$/.test(name)) continue;
    if (known.some((path) => isSame(path, name.replace(/^(?:\.{1,2}\/)+/, '')))) continue;
    const from = words[2]?.offset ?? 0;
    const message = `${command} names ${quoted(name)}, which the add-on does not have and install.sh does not make`;
    addFindings([{ code: 'hook/no-resource', from, to: from + name.length, message }], place, find);
  }
}

/** The text after the last variable of a word. */
function ending({ parts }: ShellWord): string {
  const last = parts.at(-1);
  return last?.kind === 'text' ? last.text.replace(/^\/+/, '') : '';
}

function isSame(path: string, end: string): boolean {
  return path === end || path.endsWith(`/${end}`);
}

function checkTemplate(
  listing: Listing,
  { path, script }: { readonly path: string; readonly script: string },
  find: Find,
): void {
  const { folder, shown } = listing;
  const read = readTextFile(join(folder, path), TEMPLATE_LIMIT);
  if (read.kind !== 'text') return;
  const { text } = read;
  const place = placer(`${shown}/${path}`, () => text);
  addFindings(unsetVariables(listing, { text, script }), place, find);
  const match = COMMAND.exec(text);
  if (match === null) return;
  const to = match.index + match[0].length;
  const message = 'install.sh renders this file, and the shell runs what is between backticks, also in a comment';
  const hint = 'write \\` for a backtick; for a command that is meant to run, write $(…)';
  addFindings([{ code: 'yaml/backtick', from: to - 1, to, message, hint }], place, find);
}

/** Variables with the name of the add-on: others may come from other add-ons and from the run. Nothing without a list of its settings. */
function unsetVariables(
  { ref: { name }, settings }: Listing,
  { text, script }: { readonly text: string; readonly script: string },
): readonly Remark[] {
  const fields = Object.keys(fieldsOf(fieldsOf(settings)['properties']));
  if (fields.length === 0) return [];
  const prefix = `${upperSnake(name)}_`;
  const own = new Set([`${prefix}VERSION`, ...fields.map((field) => variableByRule(name, field))]);
  return [...text.matchAll(VARIABLE)].flatMap(({ index, 0: { length }, 1: variable = '' }): readonly Remark[] => {
    const isElsewhere = !variable.startsWith(prefix) || new RegExp(`(?<![\\w{$])${variable}\\b`).test(script);
    if (isElsewhere || own.has(variable)) return [];
    const near = nearest(variable, own);
    const message = `install.sh renders this file, and ${variable} is neither a setting in schema.json nor set by install.sh: it is empty`;
    const hint = near === undefined ? `write \${${variable}-} if that is meant` : `did you mean "${near}"?`;
    return [{ code: 'yaml/variable', from: index + length - variable.length, to: index + length, message, hint }];
  });
}
