/** The table of analyzers. */
import type { Json } from '../../formats/yaml/yaml.ts';
import type { Analyzer, AnyAnalyzer } from './analyzer.ts';
import { blockDevices } from './analyzers/block-devices.ts';
import { certificate } from './analyzers/certificate.ts';
import { cpu } from './analyzers/cpu.ts';
import { diskUsage } from './analyzers/disk-usage.ts';
import { filesystemPerformance } from './analyzers/filesystem-performance.ts';
import { hostOs } from './analyzers/host-os.ts';
import { hostServices } from './analyzers/host-services.ts';
import { http } from './analyzers/http.ts';
import { ipv4Interfaces } from './analyzers/ipv4-interfaces.ts';
import { kernelModules } from './analyzers/kernel-modules.ts';
import { memory } from './analyzers/memory.ts';
import { tcpConnect, tcpLoadBalancer, tcpPortStatus, udpPortStatus } from './analyzers/network.ts';
import { sysctl } from './analyzers/sysctl.ts';
import { systemPackages } from './analyzers/system-packages.ts';
import { textAnalyze } from './analyzers/text-analyze.ts';
import { time } from './analyzers/time.ts';

/** The cast is safe: an analyzer gets only facts that its own collector has checked. */
function row<Facts extends Json>(analyzer: Analyzer<Facts>): readonly [string, AnyAnalyzer] {
  return [analyzer.kind, analyzer as unknown as AnyAnalyzer];
}

export const ANALYZERS: ReadonlyMap<string, AnyAnalyzer> = new Map([
  row(blockDevices),
  row(certificate),
  row(cpu),
  row(diskUsage),
  row(filesystemPerformance),
  row(hostOs),
  row(hostServices),
  row(http),
  row(ipv4Interfaces),
  row(kernelModules),
  row(memory),
  row(sysctl),
  row(systemPackages),
  row(tcpConnect),
  row(tcpLoadBalancer),
  row(tcpPortStatus),
  row(textAnalyze),
  row(time),
  row(udpPortStatus),
]);
