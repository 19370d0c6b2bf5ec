/** The origin of a package or a bundle: SLSA provenance 1 (slsa.dev/spec/v1.0/provenance) as in-toto statements. Pure. */
import { hexOf, type Digest } from '../../core/digest.ts';
import { BUNDLED_TOOL, prefixOf, TOC_NAME } from '../../core/layout.ts';
import { refOf } from '../../core/package.ts';
import type { Statement, Subject } from '../../formats/signing/statement.ts';
import { componentsOf, type DescribedPackage } from './components.ts';
import type { Described, DescribedBundle } from './described.ts';
import { formatPurl } from './purl.ts';

/** Type of the predicate. */
export const SLSA_PROVENANCE = 'https://slsa.dev/provenance/v1';
/** docs/sbom.md documents the parameters and inputs. */
const BUILD_TYPES = { package: 'urn:curlew:build:v1', bundle: 'urn:curlew:bundle:v1' } as const;

/** The builder, as given by the caller. */
export interface Builder {
  /** A URI that identifies the builder to verifiers. */
  readonly id: string;
  /** A URI of the run. */
  readonly invocation: string | undefined;
  /** Source of the add-ons: `git+https://…@ref`. */
  readonly repository: string | undefined;
  /** Commit ID in hex. */
  readonly commit: string | undefined;
}

/** The whole file from which `described` was read. */
export interface WholeFile {
  readonly name: string;
  readonly sha256: Digest;
}

/** An input, as in-toto's ResourceDescriptor. */
export interface SourceResource {
  readonly name?: string;
  readonly uri?: string;
  readonly digest?: Readonly<Record<string, string>>;
  readonly downloadLocation?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The statement about a file; independent of the current time. */
export function provenanceOf(file: WholeFile, described: Described, builder: Builder): Statement {
  const { bundle, contents } = described;
  const made = bundle === undefined ? packageBuild(described.packages[0]) : bundleBuild(bundle);
  const { id, invocation } = builder;
  return {
    subjects: [{ name: file.name, digest: file.sha256 }, { name: TOC_NAME, digest: contents }, ...made.subjects],
    predicateType: SLSA_PROVENANCE,
    predicate: {
      buildDefinition: {
        buildType: made.buildType,
        externalParameters: made.parameters,
        resolvedDependencies: [...provenanceSource(builder), ...made.resources],
      },
      runDetails: {
        builder: { id, version: { curlew: made.tool } },
        ...(invocation === undefined ? {} : { metadata: { invocationId: invocation } }),
      },
    },
  };
}

interface BuildFacts {
  readonly subjects: readonly Subject[];
  readonly buildType: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly resources: readonly SourceResource[];
  /** Version of the curlew that built it. */
  readonly tool: string;
}

function packageBuild(described: DescribedPackage): BuildFacts {
  const { addon, lock } = described;
  const prefix = prefixOf(refOf(addon));
  const builds = lock.containerBuilds.map(({ folder, dockerfile, version, inputs }): SourceResource => ({
    name: dockerfile,
    digest: { curlewInputs: hexOf(inputs) },
    annotations: { folder, version },
  }));
  const components = componentsOf(described).filter(({ kind }) => kind !== 'built file');
  return {
    subjects: [{ name: prefix, digest: addon.digest }],
    buildType: BUILD_TYPES.package,
    parameters: { addon: prefix.slice(0, -1), arch: addon.arch, imageFormat: addon.imageFormat },
    resources: [
      ...components.map(({ name, purl, digest, url }): SourceResource => ({
        name,
        uri: purl,
        digest: sha256(digest),
        ...(url === undefined ? {} : { downloadLocation: url }),
      })),
      ...builds,
    ],
    tool: addon.tool,
  };
}

function bundleBuild({ json, tool }: DescribedBundle): BuildFacts {
  const { release, arch, installer, os, packages, beside = [] } = json;
  const taken = [...packages, ...beside].map((one): SourceResource => {
    const { name, version } = one;
    const uri = formatPurl({ type: 'generic', name, version, qualifiers: { arch: one.arch } });
    return { name: prefixOf(one).slice(0, -1), uri, digest: sha256(one.sha256) };
  });
  return {
    subjects: [],
    buildType: BUILD_TYPES.bundle,
    parameters: { release, arch, installer, ...(os === undefined ? {} : { os: os.kept.join(',') }) },
    resources: [...taken, ...(tool === undefined ? [] : [{ name: BUNDLED_TOOL, digest: sha256(tool) }])],
    tool: json.tool,
  };
}

/** The repository and commit of the source, if known. */
export function provenanceSource({ repository, commit }: Builder): readonly SourceResource[] {
  if (repository === undefined && commit === undefined) return [];
  return [
    {
      ...(repository === undefined ? {} : { uri: repository }),
      ...(commit === undefined ? {} : { digest: { gitCommit: commit } }),
    },
  ];
}

function sha256(digest: Digest): Readonly<Record<string, string>> {
  return { sha256: hexOf(digest) };
}
