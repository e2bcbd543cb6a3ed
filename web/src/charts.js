// The parts of Apache ECharts that the page uses, and nothing else: each costs tens of kilobytes.
import * as echarts from "echarts/core";
import {BarChart, CustomChart, HeatmapChart, LineChart, ParallelChart, ScatterChart} from "echarts/charts";
import {AriaComponent, DataZoomInsideComponent, DataZoomSliderComponent, GridComponent, LegendScrollComponent,
  MarkAreaComponent, MarkLineComponent, ParallelComponent, TooltipComponent, VisualMapContinuousComponent} from "echarts/components";
import {SVGRenderer} from "echarts/renderers";

echarts.use([BarChart, CustomChart, HeatmapChart, LineChart, ParallelChart, ScatterChart, AriaComponent, DataZoomInsideComponent,
  DataZoomSliderComponent, GridComponent, LegendScrollComponent, MarkAreaComponent, MarkLineComponent, ParallelComponent,
  TooltipComponent, VisualMapContinuousComponent, SVGRenderer]);

export {echarts};
