/** `apt <package>`, `yum <package>` and similar: host packages. One row per keyword, from the table of systems. */
import type { Word } from '../../core/diagnostic.ts';
import { OS_IDS, OS_KEYWORDS, osOutputs, osRow, type OsKeyword, type OsOutput } from '../../core/os.ts';
import { eachRepeated, word, type DirectiveRequest, type Directive } from '../directive.ts';
import { quoted } from '../rules.ts';
import type { OsPackagesStep } from '../step.ts';

export interface OsPackagesRequest extends DirectiveRequest {
  readonly kind: 'os-packages';
  readonly directive: OsKeyword;
  readonly name: Word;
}

/** The common part of Debian and rpm names; no name begins like an option of a package manager. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9+._-]{0,127}$/;
const OUTPUTS: readonly OsOutput[] = ['archives', 'deps'];

/** One step for each system and output, in the order of the table of systems; names in the order of the Manifest. */
function plan(requests: readonly OsPackagesRequest[]): readonly OsPackagesStep[] {
  return OS_IDS.flatMap((os) =>
    OUTPUTS.flatMap((output): readonly OsPackagesStep[] => {
      const matching = requests.filter(({ directive }) => osRow(os).keywords[directive] === output);
      const packages = [...new Set(matching.map(({ name }) => name.text))];
      return packages.length === 0 ? [] : [{ kind: 'os-packages', os, output, packages }];
    }),
  );
}

function yieldsOf(keyword: OsKeyword): string {
  return osOutputs(keyword)
    .map(({ os, output }) => `\`${os}/${output === 'deps' ? 'Deps' : 'archives/'}\``)
    .join(', ');
}

function titlesOf(keyword: OsKeyword): string {
  return osOutputs(keyword)
    .map(({ os }) => osRow(os).title)
    .join('; ');
}

function osPackages(keyword: OsKeyword): Directive<OsPackagesRequest> {
  return {
    keyword,
    kind: 'os-packages',
    usage: `${keyword} <package>`,
    about: `A host package for ${titlesOf(keyword)}.`,
    yields: yieldsOf(keyword),
    columns: { needed: 1 },
    parse(line, find) {
      const name = word(line, 0);
      if (!NAME.test(name.text)) {
        const hint = 'letters, digits, "+", ".", "_", "-"; one package per line';
        find('packages/name', name.place, `${quoted(name.text)} is not a valid package name`, hint);
        return undefined;
      }
      return { kind: 'os-packages', keyword: line.keyword, place: line.place, directive: keyword, name };
    },
    check(requests, find) {
      eachRepeated(
        requests,
        ({ directive, name }) => `${directive} ${name.text}`,
        ({ name }, first) => {
          find('packages/duplicate', name.place, `line ${first.place.line} already has ${quoted(name.text)}`);
        },
      );
    },
    plan,
  };
}

export const osPackageDirectives: readonly Directive<OsPackagesRequest>[] = OS_KEYWORDS.map(osPackages);
