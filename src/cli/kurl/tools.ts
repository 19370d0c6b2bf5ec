/**
 * kURL's programs that add-ons call as `$DIR/bin/<name>`: `curlew kurl <name> …`. Input and output are those of kURL, so
 * they print text and do not support --json or --help.
 */
import { CurlewError, errnoOf } from '../../core/errors.ts';
import { addField, jsonOfField, removeField, textOfField } from '../../formats/yaml/yaml-fields.ts';
import { readText, writeNewText } from './files.ts';
import type { VerbContext } from './cluster-calls.ts';
import { notSupported, requiredFlag, parseGoFlags, type GoFlags } from './go-flags.ts';

export interface ToolContext extends VerbContext {
  /** Reads standard input to its end. */
  readonly input: () => Promise<string>;
}

/** Returns the output to print to standard output. */
type Tool = (args: readonly string[], context: ToolContext) => Promise<string>;

/** Changes the file of `-fp`, or prints the changed text of `-yc`. */
async function applyChange(flags: GoFlags, change: (text: string) => string): Promise<string> {
  const path = flags.values.get('fp');
  if (path === undefined) return `${change(requiredFlag('yamlutil', flags, 'yc'))}\n`;
  await writeNewText(path, change(await readText(path)));
  return '';
}

const yamlutil: Tool = async (args) => {
  const flags = parseGoFlags('yamlutil', args, {
    values: ['fp', 'yc', 'yp', 'jf', 'v'],
    switches: ['a', 'r', 'p', 'j'],
  });
  const value = (name: string): string => requiredFlag('yamlutil', flags, name);
  if (flags.switches.has('a')) return applyChange(flags, (text) => addField(text, value('yp'), value('v')));
  if (flags.switches.has('r')) return applyChange(flags, (text) => removeField(text, value('yp')));
  const text = await readText(value('fp'));
  if (flags.switches.has('j')) return `${jsonOfField(text, value('jf'))}\n`;
  if (!flags.switches.has('p'))
    throw new CurlewError('USAGE', 'curlew kurl yamlutil: one of -a, -r, -p, -j is required');
  await writeNewText(value('fp'), textOfField(text, value('yp')));
  return '';
};

async function bcryptHash(password: string, cost: number): Promise<string> {
  const { hash } = await import('bcryptjs');
  return hash(password, cost);
}

const bcrypt: Tool = async (args, { input }) => {
  const flags = parseGoFlags('bcrypt', args, { values: ['cost'], switches: [] });
  const cost = Number(flags.values.get('cost') ?? '14');
  if (!Number.isInteger(cost) || cost < 4 || cost > 31) {
    throw new CurlewError('USAGE', 'curlew kurl bcrypt: -cost must be a number from 4 to 31');
  }
  const hashes: string[] = [];
  for (const password of (await input()).split(/\r?\n/)) {
    if (password !== '') hashes.push(`${await bcryptHash(password, cost)}\n`);
  }
  return hashes.join('');
};

/** Sets one user's line in a file of users, which may be missing. */
const htpasswd: Tool = async (args) => {
  const flags = parseGoFlags('htpasswd', args, { values: ['u', 'p', 'f'], switches: [] });
  const [user, password, path] = [
    requiredFlag('htpasswd', flags, 'u'),
    requiredFlag('htpasswd', flags, 'p'),
    requiredFlag('htpasswd', flags, 'f'),
  ];
  if (/[:\n]/.test(user)) throw new CurlewError('USAGE', 'curlew kurl htpasswd: a user name must not contain a colon');
  const existing = await readText(path).catch((error: unknown) => {
    if (errnoOf(error instanceof CurlewError ? error.cause : error) === 'ENOENT') return '';
    throw error;
  });
  const others = existing.split('\n').filter((line) => line !== '' && !line.startsWith(`${user}:`));
  const lines = [...others, `${user}:${await bcryptHash(password, 5)}`];
  await writeNewText(path, lines.map((line) => `${line}\n`).join(''));
  return '';
};

const kurl: Tool = async (args, context) => (await import('./verbs.ts')).runVerb(args, context);

/** Loads the programs for installer specs on demand, because their parser is slow to load. */
async function specTool(name: SpecTool, args: readonly string[]): Promise<string> {
  return (await import('./spec-tools.ts'))[name](args);
}

type SpecTool = 'bashmerge' | 'installermerge' | 'vendorflights' | 'yamltobash';

const TOOLS: Readonly<Record<string, Tool>> = {
  bashmerge: async (args) => specTool('bashmerge', args),
  bcrypt,
  htpasswd,
  installermerge: async (args) => specTool('installermerge', args),
  kurl,
  subnet: async (args) => (await import('./subnet.ts')).subnet(args),
  vendorflights: async (args) => specTool('vendorflights', args),
  yamltobash: async (args) => specTool('yamltobash', args),
  yamlutil,
};

/** Runs one of kURL's programs; `UNSUPPORTED` for those that only kURL's own package contains. */
export async function runKurlTool([name = '', ...args]: readonly string[], context: ToolContext): Promise<string> {
  const tool = Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
  if (tool === undefined) throw notSupported(name);
  return tool(args, context);
}
