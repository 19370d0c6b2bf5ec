import { inOutcome, AnalyzerProblem, type Analyzer, type AnalyzerResult } from '../analyzer.ts';
import {
  systemPackages as collector,
  type SystemPackage,
  type SystemPackageFacts,
} from '../collectors/system-packages.ts';
import { parseTruth } from '../go-notation.ts';
import { messageOf } from '../message.ts';
import type { AnalyzerSpec } from '../spec.ts';
import type { ValueMap } from '../../../formats/go-template/values.ts';

/** Evaluates each package separately; conditions and messages are templates, such as `{{ not .IsInstalled }}`. */
export const systemPackages: Analyzer<SystemPackageFacts> = {
  kind: 'systemPackages',
  collector,
  settings: {},
  title: () => 'System Packages',
  analyze: (facts, { outcomes }: AnalyzerSpec): readonly AnalyzerResult[] =>
    facts.packages.flatMap((one) => {
      const data = dataOf(one, facts);
      const found = outcomes.find((outcome) => inOutcome(outcome, () => holds(outcome.when, data)));
      if (found === undefined) return [];
      const message = inOutcome(found, () => messageOf(found.message, data));
      return [{ verdict: found.verdict, message, uri: found.uri }];
    }),
};

function holds(when: string, data: ValueMap): boolean {
  if (when === '') return true;
  const truth = parseTruth(messageOf(when, data));
  if (truth === undefined) throw new AnalyzerProblem(`the condition ${JSON.stringify(when)} is neither true nor false`);
  return truth;
}

function dataOf({ name, details, exitCode, error }: SystemPackage, { os, osVersion }: SystemPackageFacts): ValueMap {
  const [major, minor] = osVersion.split('.').map((part) => (/^\d{1,9}$/.test(part) ? Number(part) : 0));
  return {
    OS: os,
    OSVersion: osVersion,
    OSVersionMajor: major ?? 0,
    OSVersionMinor: minor ?? 0,
    Name: name,
    Error: error,
    ExitCode: String(exitCode),
    IsInstalled: error === '' && exitCode === 0 && !/not installed|No matching Packages/.test(details),
    ...fieldsOf(details),
  };
}

/** `Key-Name: value` of dpkg and rpm, as `KeyName`. */
function fieldsOf(details: string): ValueMap {
  return Object.fromEntries(
    [...details.matchAll(/^(\p{Lu}[^:\n]*):(.*)$/gmu)].flatMap(([, key = '', value = '']) => {
      const name = key.replaceAll(/[ -]/g, '');
      return value.trim() === '' ? [] : [[name, value.trim()] as const];
    }),
  );
}
