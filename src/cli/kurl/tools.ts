/**
 * The programs of kURL that add-ons call by `$DIR/bin/<name>`: `curlew kurl <name> …`. The ways in and out are kURL's, so
 * they print text and know nothing of --json or --help.
 */
import { CurlewError, errnoOf } from '../../core/errors.ts';
import { addField, jsonOfField, removeField, textOfField } from '../../formats/yaml/yaml-fields.ts';
import { readText, writeText } from './files.ts';
import type { VerbContext } from './cluster-calls.ts';
import { needed, readWords, type Words } from './words.ts';

export interface ToolContext extends VerbContext {
  /** Standard input, read to its end. */
  readonly input: () => Promise<string>;
}

/** Returns what is printed on standard output at the end. */
type Tool = (words: readonly string[], context: ToolContext) => Promise<string>;

/** Changes the file of `-fp`, or prints the text of `-yc` changed. */
async function changed(words: Words, change: (text: string) => string): Promise<string> {
  const path = words.values.get('fp');
  if (path === undefined) return `${change(needed('yamlutil', words, 'yc'))}\n`;
  await writeText(path, change(await readText(path)));
  return '';
}

const yamlutil: Tool = async (given) => {
  const words = readWords('yamlutil', given, { values: ['fp', 'yc', 'yp', 'jf', 'v'], switches: ['a', 'r', 'p', 'j'] });
  const value = (name: string): string => needed('yamlutil', words, name);
  if (words.switches.has('a')) return changed(words, (text) => addField(text, value('yp'), value('v')));
  if (words.switches.has('r')) return changed(words, (text) => removeField(text, value('yp')));
  const text = await readText(value('fp'));
  if (words.switches.has('j')) return `${jsonOfField(text, value('jf'))}\n`;
  if (!words.switches.has('p')) throw new CurlewError('USAGE', 'curlew kurl yamlutil: one of -a, -r, -p, -j is needed');
  await writeText(value('fp'), textOfField(text, value('yp')));
  return '';
};

async function bcryptHash(password: string, cost: number): Promise<string> {
  const { hash } = await import('bcryptjs');
  return hash(password, cost);
}

const bcrypt: Tool = async (given, { input }) => {
  const words = readWords('bcrypt', given, { values: ['cost'], switches: [] });
  const cost = Number(words.values.get('cost') ?? '14');
  if (!Number.isInteger(cost) || cost < 4 || cost > 31) {
    throw new CurlewError('USAGE', 'curlew kurl bcrypt: -cost is a number from 4 to 31');
  }
  const hashes: string[] = [];
  for (const password of (await input()).split(/\r?\n/)) {
    if (password !== '') hashes.push(`${await bcryptHash(password, cost)}\n`);
  }
  return hashes.join('');
};

/** Sets one user's line in a file of users, which need not be there. */
const htpasswd: Tool = async (given) => {
  const words = readWords('htpasswd', given, { values: ['u', 'p', 'f'], switches: [] });
  const [user, password, path] = [
    needed('htpasswd', words, 'u'),
    needed('htpasswd', words, 'p'),
    needed('htpasswd', words, 'f'),
  ];
  if (/[:\n]/.test(user)) throw new CurlewError('USAGE', 'curlew kurl htpasswd: a user has no colon in it');
  const before = await readText(path).catch((error: unknown) => {
    if (errnoOf(error instanceof CurlewError ? error.cause : error) === 'ENOENT') return '';
    throw error;
  });
  const others = before.split('\n').filter((line) => line !== '' && !line.startsWith(`${user}:`));
  const lines = [...others, `${user}:${await bcryptHash(password, 5)}`];
  await writeText(path, lines.map((line) => `${line}\n`).join(''));
  return '';
};

const kurl: Tool = async (words, context) => (await import('./verbs.ts')).runVerb(words, context);

function notSupported(what: string): CurlewError {
  return new CurlewError(
    'UNSUPPORTED',
    `${what}: not supported, put kURL's own program into bin of the install folder`,
  );
}

/** The programs for installer specs need the reader of those, which takes a while to load. */
async function specTool(name: SpecTool, words: readonly string[]): Promise<string> {
  return (await import('./spec-tools.ts'))[name](words);
}

type SpecTool = 'bashmerge' | 'installermerge' | 'vendorflights' | 'yamltobash';

const TOOLS: Readonly<Record<string, Tool>> = {
  bashmerge: async (words) => specTool('bashmerge', words),
  bcrypt,
  htpasswd,
  installermerge: async (words) => specTool('installermerge', words),
  kurl,
  subnet: async (words) => (await import('./subnet.ts')).subnet(words),
  vendorflights: async (words) => specTool('vendorflights', words),
  yamltobash: async (words) => specTool('yamltobash', words),
  yamlutil,
};

/** Runs one of kURL's programs; `UNSUPPORTED` for those that only kURL's own package brings. */
export async function runKurlTool([name = '', ...words]: readonly string[], context: ToolContext): Promise<string> {
  const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
  if (tool === undefined) throw notSupported(name);
  return tool(words, context);
}
