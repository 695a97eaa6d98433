//! Lines with their intervals, as SVG.

use plotters::coord::combinators::LogCoord;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use std::error::Error;

/// A figure.
#[derive(Clone, Debug)]
pub struct Plot {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

/// What is along it.
#[derive(Clone, Debug)]
pub struct Axis {
    pub name: String,
    pub is_log: bool,
}

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    pub name: String,
    pub points: Vec<Point>,
}

/// A median and the interval that it lies in with a confidence of 95 %.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub low: f64,
    pub high: f64,
}

impl Plot {
    /// The figure as the text of an SVG file.
    ///
    /// # Errors
    ///
    /// What the plotting library has to say.
    pub fn svg(&self) -> Result<String, Box<dyn Error>> {
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            area.fill(&WHITE)?;
            // Both axes are logarithmic for the library; a linear one is a
            // figure whose bounds say so.
            let (x, y) = (self.bounds(|point| (point.x, point.x)), self.y_bounds());
            let mut builder = ChartBuilder::on(&area);
            builder.caption(&self.title, (FONT, 20)).margin(12);
            builder.x_label_area_size(44).y_label_area_size(64);
            if self.y.is_log {
                let chart =
                    builder.build_cartesian_2d((x.0..x.1).log_scale(), (y.0..y.1).log_scale())?;
                self.draw(chart)?;
            } else {
                let chart = builder.build_cartesian_2d((x.0..x.1).log_scale(), y.0..y.1)?;
                self.draw(chart)?;
            }
            area.present()?;
        }
        Ok(text)
    }

    fn y_bounds(&self) -> (f64, f64) {
        let (low, high) = self.bounds(|point| (point.low, point.high));
        if self.y.is_log { (low, high) } else { (0.0, high) }
    }

    /// The least and the most, with a margin.
    fn bounds(&self, ends: impl Fn(&Point) -> (f64, f64)) -> (f64, f64) {
        let points = self.series.iter().flat_map(|series| &series.points);
        let ends = points.map(ends).fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), point| {
            (low.min(point.0.max(f64::MIN_POSITIVE)), high.max(point.1))
        });
        (ends.0 / MARGIN, ends.1 * MARGIN)
    }

    fn draw<'a, Y>(
        &self,
        mut chart: ChartContext<'a, SVGBackend<'a>, Cartesian2d<LogCoord<f64>, Y>>,
    ) -> Result<(), Box<dyn Error>>
    where
        Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let number = |value: &f64| format!("{value}");
        chart
            .configure_mesh()
            .x_desc(&self.x.name)
            .y_desc(&self.y.name)
            .label_style((FONT, 13))
            .x_label_formatter(&number)
            .light_line_style(WHITE)
            .draw()?;
        for (index, series) in self.series.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            let points = series.points.iter().map(|point| (point.x, point.y));
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))?
                .label(&series.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
            let interval = |point: &Point| {
                ErrorBar::new_vertical(point.x, point.low, point.y, point.high, colour, 6)
            };
            chart.draw_series(series.points.iter().map(interval))?;
        }
        chart
            .configure_series_labels()
            .background_style(WHITE)
            .label_font((FONT, 13))
            .position(SeriesLabelPosition::UpperLeft)
            .draw()?;
        Ok(())
    }
}

const SIZE: (u32, u32) = (720, 480);
const FONT: &str = "sans-serif";
const MARGIN: f64 = 1.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(is_log: bool) -> Plot {
        let point = |x| Point { x, y: x * 2.0, low: x, high: x * 3.0 };
        let points = [1.0, 16.0, 256.0].map(point).to_vec();
        Plot {
            title: "Latency".to_owned(),
            x: Axis { name: "bytes".to_owned(), is_log: true },
            y: Axis { name: "microseconds".to_owned(), is_log },
            series: vec![Series { name: "4 threads".to_owned(), points }],
        }
    }

    #[test]
    fn the_file_says_what_is_in_it() {
        for is_log in [false, true] {
            let svg = plot(is_log).svg().unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
            for word in ["Latency", "bytes", "microseconds", "4 threads"] {
                assert!(svg.contains(word), "{word}");
            }
        }
    }
}
